//! Compares every setting and its default with the committed snapshot.

use super::settings::{self, Setting};
use steadfast_test_snapshots::assert_snapshot;

#[test]
fn settings_match_snapshot() {
    let mut blocks: Vec<String> = settings::ALL.iter().map(|setting| block(setting)).collect();
    blocks.sort();
    let rest = format!("\nthe configuration file: {}\nvariables of templates: {}NAME\n", settings::CONFIG_ENV, settings::VARS_ENV);
    assert_snapshot("settings.txt", &(blocks.concat() + &rest));
}

fn block(setting: &Setting) -> String {
    let Setting { key, env, default, secret, help, .. } = setting;
    let flag = setting.flag.unwrap_or("--set");
    format!("{key}\n  environment: {env}\n  flag: {flag}\n  default: {default:?}\n  secret: {secret}\n  help: {help}\n")
}
