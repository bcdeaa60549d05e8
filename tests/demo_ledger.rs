//! The judge of the `orders` example, given faults on purpose: it has to find each of them.

#[allow(dead_code)]
#[path = "demo/input.rs"]
mod input;
#[allow(dead_code)]
#[path = "demo/ledger.rs"]
mod ledger;

use input::Input;
use ledger::{Findings, Ledger};

/// Key `a` has the events at positions 0, 1, 3, 5; key `b` those at 2, 4.
const EVENTS: &str = "k,n\na,1\na,2\nb,1\na,3\nb,2\na,4\n";

fn read(csv: &str, seq: Option<&str>) -> Input {
    Input::from_bytes("events", csv.as_bytes().to_vec(), "k", seq).expect("well-formed input")
}

/// Delivers the events at these positions, in this order, and asks for the verdict.
fn judge(csv: &str, seq: Option<&str>, positions: &[usize]) -> Findings {
    let input = read(csv, seq);
    let ledger = Ledger::new(&input, 1);
    for position in positions {
        let key = &input.keys[input.events[*position].key];
        ledger.delivered(key, &ledger.body(*position));
    }
    ledger.findings()
}

fn assert_found(positions: &[usize], out_of_order: u64, lost: u64) {
    for seq in [None, Some("n")] {
        let found = judge(EVENTS, seq, positions);
        assert_eq!(
            (found.out_of_order, found.lost),
            (out_of_order, lost),
            "out of order and lost of {positions:?} with sequence column {seq:?}"
        );
        assert_eq!(found.is_clean(), out_of_order + lost == 0);
    }
}

#[test]
fn the_order_of_the_file_is_clean() {
    let found = judge(EVENTS, Some("n"), &[0, 1, 2, 3, 4, 5]);
    let clean = Findings { events: 6, keys: 2, delivered: 6, ..Findings::default() };
    assert_eq!(found, clean);
    assert!(found.is_clean());
}

#[test]
fn keys_may_pass_each_other() {
    assert_found(&[2, 0, 4, 1, 3, 5], 0, 0);
}

#[test]
fn a_missing_event_is_lost() {
    assert_found(&[0, 1, 2, 4, 5], 0, 1);
    assert_found(&[], 0, 6);
}

#[test]
fn two_exchanged_events_are_out_of_order() {
    assert_found(&[1, 0, 2, 3, 4, 5], 1, 0);
    assert_found(&[0, 1, 4, 2, 3, 5], 1, 0);
}

#[test]
fn a_late_event_is_out_of_order_and_its_line_is_named() {
    let found = judge(EVENTS, None, &[1, 3, 5, 0, 2, 4]);
    assert_eq!((found.out_of_order, found.first_disorder_line), (1, Some(2)));
}

#[test]
fn a_redelivery_may_repeat_a_suffix() {
    assert_found(&[0, 1, 3, 1, 3, 5, 2, 4], 0, 0);
    assert_found(&[0, 0, 0, 1, 3, 5, 2, 2, 4, 4], 0, 0);
    // Interrupted, and begun anew further back.
    assert_found(&[0, 1, 3, 1, 0, 1, 3, 5, 2, 4], 0, 0);
    let found = judge(EVENTS, None, &[0, 1, 3, 1, 3, 5, 2, 4]);
    assert_eq!((found.delivered, found.redelivered), (6, 2));
}

#[test]
fn a_redelivery_that_leaves_one_out_is_out_of_order() {
    assert_found(&[0, 1, 3, 0, 3, 5, 2, 4], 1, 0);
}

#[test]
fn a_redelivery_that_stops_short_is_out_of_order() {
    assert_found(&[0, 1, 3, 0, 5, 2, 4], 1, 0);
    assert_found(&[0, 1, 3, 5, 0, 1, 2, 4], 1, 0);
}

#[test]
fn with_a_sequence_column_its_values_decide() {
    let csv = "k,n\na,1\na,3\na,2\na,9\n";
    let found = judge(csv, Some("n"), &[0, 1, 2, 3]);
    assert_eq!((found.out_of_order, found.first_disorder_line), (1, Some(4)));
    assert_eq!(judge(csv, None, &[0, 1, 2, 3]).out_of_order, 0);
    assert_eq!(judge(csv, Some("n"), &[0, 2, 1, 3]).out_of_order, 0);
    let twins = "k,n\na,5\na,5\n";
    assert_eq!(judge(twins, Some("n"), &[0, 1]).out_of_order, 1, "equal does not ascend");
    let negative = "k,n\na,-5\na,-4\n";
    assert!(judge(negative, Some("n"), &[0, 1]).is_clean());
}

#[test]
fn what_was_never_sent_is_foreign() {
    let input = read(EVENTS, None);
    let ledger = Ledger::new(&input, 1);
    let good = ledger.body(0);
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    let mut elsewhere = good.clone();
    elsewhere[0] = 200;
    for (key, body) in [("b", &good), ("a", &changed), ("a", &elsewhere), ("a", &vec![0; 3])] {
        ledger.delivered(key, body);
    }
    let found = ledger.findings();
    assert_eq!((found.foreign, found.delivered, found.lost), (4, 0, 6));
    assert!(!found.is_clean());
}

#[test]
fn two_threads_in_one_queue_are_out_of_order() {
    let input = read(EVENTS, None);
    let ledger = Ledger::new(&input, 2);
    ledger.entered(0);
    ledger.entered(1);
    ledger.left(0);
    ledger.entered(0);
    assert_eq!(ledger.findings().out_of_order, 0);
    ledger.entered(1);
    assert_eq!(ledger.findings().out_of_order, 1);
}

#[test]
fn an_offset_stored_past_unfinished_work_is_early() {
    let input = read(EVENTS, None);
    let ledger = Ledger::new(&input, 2);
    ledger.stored(0, 0);
    ledger.succeeded(0, 0);
    ledger.succeeded(0, 2);
    ledger.stored(0, 1);
    assert_eq!(ledger.findings().stored_early, 0);
    ledger.stored(0, 3);
    assert_eq!(ledger.findings().stored_early, 1, "offset 1 is open");
    ledger.stored(1, 2);
    assert_eq!(ledger.findings().stored_early, 3, "queue 1 has done nothing");
    ledger.succeeded(0, 1);
    ledger.stored(0, 3);
    assert_eq!(ledger.findings().stored_early, 3);
}
