#![allow(unused)]
use steadfast::workflow;

#[workflow]
struct Work {
    input: u32,
}

fn main() {}
