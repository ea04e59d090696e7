//! Compares the bytes of every message between entities with their snapshot.

use super::*;
use prost::Message as _;
use steadfast_test_snapshots::bytes::{Page, Schema};
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Messages of Message {
    Message::RequestSlot { .. } => "REQUEST_SLOT",
    Message::GrantSlot { .. } => "GRANT_SLOT",
    Message::ReleaseSlot { .. } => "RELEASE_SLOT",
    Message::StartChild(_) => "START_CHILD",
    Message::CancelChild { .. } => "CANCEL_CHILD",
    Message::ChildEnded { .. } => "CHILD_ENDED",
    Message::PostLetter(_) => "POST_LETTER",
    Message::TaskChanged(_) => "TASK_CHANGED",
    Message::AdmitTask { .. } => "ADMIT_TASK",
    Message::RecallTask { .. } => "RECALL_TASK",
    Message::OperateTask { .. } => "OPERATE_TASK",
    Message::AcquireLock { .. } => "ACQUIRE_LOCK",
    Message::LockGranted { .. } => "LOCK_GRANTED",
    Message::LockRefused { .. } => "LOCK_REFUSED",
    Message::ConfirmLock { .. } => "CONFIRM_LOCK",
    Message::RenewLock { .. } => "RENEW_LOCK",
    Message::DenyLock { .. } => "DENY_LOCK",
    Message::ReleaseLock { .. } => "RELEASE_LOCK",
    Message::LockLost { .. } => "LOCK_LOST",
    Message::SettleLetter { .. } => "SETTLE_LETTER",
});

#[test]
fn entity_messages_match_snapshot() {
    let mut schema = Schema::of(|bytes| stored::Body::decode(bytes).is_ok());
    let mut page = Page::default();
    for message in every_message().into_iter().chain(every_message_of_plans()) {
        let label = Messages::of(&message);
        page.cover(label);
        page.form(label);
        page.value("type", message.kind());
        page.protobuf(&message.encode(), &mut schema);
    }
    page.assert_covers(Messages::ALL);
    schema.assert_shown();
    assert_snapshot("bytes/entity-messages.txt", page.text());
}
