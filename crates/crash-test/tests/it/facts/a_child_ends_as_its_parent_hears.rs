//! A parent hears how each child that it waits for has ended.

use crate::world::World;
use steadfast_kernel::Event;

pub(super) fn holds_at_the_end(world: &World) {
    let mut heard = 0;
    for (run, entry) in world.runs().flat_map(|(_, history)| history.run_moments()) {
        let Event::ChildEnded { child, outcome } = &entry.event else { continue };
        let (_, id) = run.children().find(|(known, _)| *known == child).expect("it was started"); // in that life of the parent
        let (state, _) = world.run(id.as_str()).expect("it has begun");
        let ended = state.ended().expect("it has ended");
        let same = match (&ended.outcome, outcome) {
            (Ok(output), Ok(told)) => output == told,
            (Err(failure), Err(told)) => failure.code == told.code,
            _ => false,
        };
        assert!(same, "{} was told {outcome:?} of {id}, which ended with {:?}", run.id, ended.outcome);
        heard += 1;
    }
    assert!(heard > 0, "there were children");
}
