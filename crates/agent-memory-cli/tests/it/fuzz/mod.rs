//! Mutated events of agents and requests of clients: see `outside_checks::fuzz`. Settings are in `src/config.rs`.

mod events;
#[cfg(all(target_os = "linux", feature = "serve"))]
mod requests;

#[test]
fn events() {
    events::events();
}

#[test]
#[cfg(all(target_os = "linux", feature = "serve"))]
fn requests_of_clients() {
    requests::requests_of_clients();
}
