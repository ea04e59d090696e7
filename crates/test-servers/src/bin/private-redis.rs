//! Starts a private Redis, says where it is, and keeps it until this is ended: to try something out
//! by hand.
#![expect(clippy::print_stdout, reason = "where the server is, is what this is for")]

use steadfast_test_servers::RedisServer;

fn main() {
    let server = RedisServer::start();
    println!("{}", server.url());
    loop {
        std::thread::park();
    }
}
