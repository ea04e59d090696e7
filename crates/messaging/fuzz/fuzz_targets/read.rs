//! Any bytes, read as a node reads what comes from outside.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _no_packet = steadfast_messaging::fuzzing::read(bytes);
});
