//! How many queues change hands when a client joins or leaves.

use std::fmt::Write as _;
use std::sync::Arc;

use lanekeeper::allocate::{Members, Owners, Route, Strategy};

use crate::{Case, allocation, cases, clients, members, nearby, queues, route};

const QUEUES: usize = 1_024;
const CLIENTS: usize = 16;

/// Who has what, with the previous owners where the strategy goes by them.
fn owners(case: &Case, before: &Owners, route: &Arc<Route>, members: &Arc<Members>) -> Owners {
    let sticky = || Strategy::Sticky(Arc::new(before.clone()));
    let strategy = match case.name {
        "STICKY" => sticky(),
        "MACHINE_ROOM_NEARBY-STICKY" => nearby(sticky()),
        _ => case.strategy.clone(),
    };
    allocation(&strategy, route, members).shares().unwrap().owners()
}

fn moved(before: &Owners, after: &Owners) -> usize {
    assert_eq!(before.len(), after.len());
    before.iter().zip(after.iter()).filter(|(a, b)| a.1 != b.1).count()
}

/// The average over every client of 17 that leaves, and comes back: how many of 1,024 queues move.
fn measured(case: &Case) -> (usize, usize, usize) {
    let route = route(queues(QUEUES));
    let all = clients(CLIENTS + 1);
    let (mut joins, mut leaves, mut had) = (0, 0, 0);
    for gone in 0..all.len() {
        let mut rest = all.clone();
        let id = rest.remove(gone);
        let (rest, all) = (members(rest), members(all.clone()));
        let first = owners(case, &Owners::default(), &route, &rest);
        let joined = owners(case, &first, &route, &all);
        let left = owners(case, &joined, &route, &rest);
        joins += moved(&first, &joined);
        leaves += moved(&joined, &left);
        had += joined.iter().filter(|(_, owner)| *owner == id).count();
    }
    let average = |sum: usize| (sum + all.len() / 2) / all.len();
    (average(joins), average(leaves), average(had))
}

/// The table of src/docs/allocation.md.
fn table() -> String {
    let mut text = String::from(
        "| strategy | queues moved, 16 clients to 17 | 17 to 16 | share of the 17th |\n\
         |---|---|---|---|\n",
    );
    for case in &cases() {
        let (join, leave, share) = measured(case);
        let _ = writeln!(text, "| `{}` | {join} | {leave} | {share} |", case.name);
    }
    text
}

#[test]
fn the_documented_movement_is_what_is_measured() {
    let table = table();
    println!("{table}");
    let documented = include_str!("../../src/docs/allocation.md");
    assert!(documented.contains(&table), "src/docs/allocation.md lacks:\n{table}");
}

/// Sticky moves exactly what the newcomer gets, and what the leaver had, for all small sizes.
#[test]
fn a5_sticky_moves_no_more_than_balance_asks_for() {
    let sticky = |owners: Owners| Strategy::Sticky(Arc::new(owners));
    for queue_count in 1..=64 {
        let route = route(queues(queue_count));
        for client_count in 1..=63 {
            let few = members(clients(client_count));
            let many = members(clients(client_count + 1));
            let first = allocation(&sticky(Owners::default()), &route, &few).shares().unwrap();
            let joined = allocation(&sticky(first.owners()), &route, &many).shares().unwrap();
            let left = allocation(&sticky(joined.owners()), &route, &few).shares().unwrap();
            // The newcomer's is the smallest share that balance knows, since nobody has to move
            // a queue so that it gets one more than the average.
            let join = moved(&first.owners(), &joined.owners());
            assert_eq!(join, queue_count / (client_count + 1));
            assert_eq!(moved(&joined.owners(), &left.owners()), join);
        }
    }
}
