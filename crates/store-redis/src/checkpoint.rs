//! A checkpoint as it is stored: JSON whose last two fields are version and fence, where the scripts find them.

use crate::read::timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steadfast_kernel::Payload;
use steadfast_store::SharedCheckpoint;

/// In the order in which it is written; the scripts know its beginning and its end.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    last_completed_stage_index: u32,
    completed_stages: &'a [String],
    context_data: &'a RawValue,
    saved_at: String,
    version: u64,
    fence: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    last_completed_stage_index: u32,
    completed_stages: Vec<String>,
    #[serde(borrow)]
    context_data: &'a RawValue,
    saved_at: String,
    version: u64,
    fence: u64,
}

/// The text; nothing if its data is not JSON.
pub(crate) fn write(checkpoint: &SharedCheckpoint) -> Option<String> {
    serde_json::to_string(&Written {
        last_completed_stage_index: checkpoint.index,
        completed_stages: &checkpoint.completed,
        context_data: serde_json::from_slice(&checkpoint.data.bytes).ok()?,
        saved_at: checkpoint.saved_at.to_string(),
        version: checkpoint.version,
        fence: checkpoint.fence,
    })
    .ok()
}

/// The checkpoint; nothing if the text is something else.
pub(crate) fn read(text: &[u8]) -> Option<SharedCheckpoint> {
    let found: Read<'_> = serde_json::from_slice(text).ok()?;
    Some(SharedCheckpoint {
        index: found.last_completed_stage_index,
        completed: found.completed_stages,
        data: Payload::json(found.context_data.get().to_owned()),
        saved_at: timestamp(&found.saved_at)?,
        version: found.version,
        fence: found.fence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::Timestamp;

    fn example(data: &str) -> SharedCheckpoint {
        SharedCheckpoint {
            index: 1,
            completed: vec!["drain".into(), "move".into()],
            data: Payload::json(data.to_owned()),
            saved_at: Timestamp::from_micros(1_500_000),
            version: u64::MAX,
            fence: 3,
        }
    }

    #[test]
    fn it_is_written_so_that_people_can_read_it_and_scripts_find_the_end() {
        assert_eq!(
            write(&example(r#"{"n": 1.50}"#)).unwrap(),
            r#"{"lastCompletedStageIndex":1,"completedStages":["drain","move"],"contextData":{"n": 1.50},"savedAt":"1970-01-01T00:00:01.5Z","version":18446744073709551615,"fence":3}"#
        );
    }

    #[test]
    fn what_was_written_is_read() {
        let checkpoint = example(r#"{"big":123456789012345678901234567890,"deep":[[{}]]}"#);
        assert_eq!(read(write(&checkpoint).unwrap().as_bytes()), Some(checkpoint));
    }

    #[test]
    fn data_that_is_not_json_is_not_written() {
        assert_eq!(write(&example("{")), None);
        assert_eq!(write(&example(r#"{},"fence":9}"#)), None);
    }
}
