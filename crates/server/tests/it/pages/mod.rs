//! The console: what is on its pages, and how they behave in a real browser.

mod browser;
mod cluster;
mod flows;
mod html;
mod journeys;
mod keys;
mod letters;
mod plans;
mod rollout;
mod site;
mod tenants;

pub(crate) use flows::Post;
