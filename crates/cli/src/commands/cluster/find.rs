//! Which instance is meant.

use crate::error::Error;
use steadfast_kernel::code;
use steadfast_server::shapes::{Cluster, Instance};

/// The instance of that id or address, or the only one whose id begins so.
///
/// # Errors
/// If there is none, or more than one.
pub(super) fn find<'a>(cluster: &'a Cluster, named: &str) -> Result<&'a Instance, Error> {
    let all = || cluster.instances.iter();
    if let Some(instance) = all().find(|instance| instance.id == named) {
        return Ok(instance);
    }
    let at_address: Vec<_> = all().filter(|instance| is_at(&instance.address, named)).collect();
    let living: Vec<_> = at_address.iter().copied().filter(|instance| instance.lives).collect();
    let found = match (&living[..], &at_address[..]) {
        ([_, ..], _) => living, // one that came to the place of another has its address
        (_, [_, ..]) => at_address,
        _ => all().filter(|instance| instance.id.starts_with(named)).collect(),
    };
    match found[..] {
        [instance] => Ok(instance),
        [] => Err(nobody(cluster, named)),
        _ => Err(Error::Usage(format!("{named:?} may be {}; name one of them by its id", listed(cluster, &found)))),
    }
}

/// Whether that is the address, with its scheme or without.
fn is_at(address: &str, named: &str) -> bool {
    let bare = |text: &str| text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/').to_owned();
    address == named || bare(address) == bare(named)
}

fn nobody(cluster: &Cluster, named: &str) -> Error {
    let code = code::INSTANCE_NOT_FOUND;
    let there = listed(cluster, &cluster.instances.iter().collect::<Vec<_>>());
    Error::Failed(format!("no instance {named:?} shares the store; there are {there} [{code}]\n  about this error: docs/errors/{code}.md"))
}

fn listed(cluster: &Cluster, instances: &[&Instance]) -> String {
    let each = |instance: &&Instance| format!("{} ({})", cluster.short(&instance.id), instance.address);
    instances.iter().map(each).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn an_instance_is_found_by_its_id_its_address_or_the_beginning_of_its_id() {
        let cluster = sample(&[("aa11", "http://10.0.0.7:7373"), ("aa22", "http://10.0.0.8:7373"), ("aa", "http://10.0.0.9:7373")]);
        for (named, id) in [
            ("aa11", "aa11"),
            ("aa2", "aa22"),
            ("aa", "aa"),
            ("10.0.0.8:7373", "aa22"),
            ("http://10.0.0.7:7373", "aa11"),
            ("http://10.0.0.7:7373/", "aa11"),
        ] {
            assert_eq!(find(&cluster, named).map(|instance| instance.id.as_str()).unwrap(), id, "{named}");
        }
        let unclear = find(&cluster, "a").unwrap_err();
        assert!(unclear.exit_code() == 2 && unclear.to_string().contains("aa11 (http://10.0.0.7:7373), aa22"), "{unclear}");
        let nobody = find(&cluster, "10.0.0.8").unwrap_err();
        assert!(nobody.exit_code() == 1 && nobody.to_string().contains("[SF0143]"), "{nobody}");
    }

    #[test]
    fn the_one_that_lives_is_meant_where_another_was() {
        let mut cluster = sample(&[("old", "http://h:1"), ("new", "http://h:1")]);
        cluster.instances[0].lives = false;
        assert_eq!(find(&cluster, "h:1").unwrap().id, "new");
        assert_eq!(find(&cluster, "o").unwrap().id, "old");
        cluster.instances[1].lives = false;
        assert_eq!(find(&cluster, "h:1").unwrap_err().exit_code(), 2);
    }
}
