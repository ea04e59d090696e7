#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

struct Shop;

impl Shop {
    #[workflow]
    async fn work(&self, ctx: Ctx, input: u32) -> Result<u32, Failure> {
        Ok(input)
    }
}

fn main() {}
