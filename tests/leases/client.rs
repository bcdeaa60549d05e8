//! The client's side: rules L4 and L5.

use lanekeeper::lease::{Answer, LeaseClient, Request, RequestId, Told};
use lanekeeper::process_queue::Refusal;

type Client = LeaseClient<&'static str, &'static str>;

/// Asks, and answers that everything asked for is granted, at `sent_ms` and `answered_ms`.
fn grant(
    client: &mut Client,
    sent_ms: i64,
    answered_ms: i64,
    token: Option<u64>,
) -> Vec<Told<&'static str>> {
    let mut told = Vec::new();
    for request in client.due(sent_ms) {
        let granted: Vec<_> = request.queues.iter().map(|&queue| Answer { queue, token }).collect();
        told.extend(client.answered(request.id, &granted, answered_ms));
    }
    told
}

fn granted(generation: u64) -> Told<&'static str> {
    Told::Granted { queue: "q", generation }
}

fn renewed(generation: u64) -> Told<&'static str> {
    Told::Renewed { queue: "q", generation }
}

/// One queue, wanted at 0 in generation 1.
fn wanting() -> Client {
    let mut client = Client::new();
    client.want("q", "broker", 1, 0).unwrap();
    client
}

#[test]
fn l4_a_grant_dates_from_the_sending_and_lasts_30_s() {
    let mut client = wanting();
    assert!(!client.is_valid(&"q", 1, 0));
    assert_eq!(grant(&mut client, 0, 5_000, None), [granted(1)]);
    assert!(client.is_valid(&"q", 1, 5_000));
    assert!(client.is_valid(&"q", 1, 30_000));
    assert!(!client.is_valid(&"q", 1, 30_001));
    assert!(!client.is_valid(&"q", 2, 30_001) && !client.is_valid(&"other", 1, 30_001));
}

#[test]
fn l4_an_answer_that_took_too_long_grants_nothing() {
    let mut client = wanting();
    assert_eq!(grant(&mut client, 0, 30_001, None), []);
    assert!(!client.is_valid(&"q", 1, 30_001));
    assert_eq!(grant(&mut client, 30_001, 30_002, None), [granted(1)], "it goes on");
}

#[test]
fn l4_an_answer_to_an_older_request_neither_lowers_nor_revives() {
    let mut client = wanting();
    let older = client.due(0).remove(0);
    let newer = client.due(20_000).remove(0);
    let all = [Answer { queue: "q", token: None }];
    assert_eq!(client.answered(newer.id, &all, 20_500), [granted(1)]);
    assert_eq!(client.answered(older.id, &all, 20_600), []);
    assert!(client.is_valid(&"q", 1, 50_000), "not lowered to the older one's time");

    let older = client.due(40_000).remove(0);
    let newer = client.due(60_000).remove(0);
    let refused = Told::Refused { queue: "q", generation: 1 };
    assert_eq!(client.answered(newer.id, &[], 60_100), [refused]);
    assert_eq!(client.answered(older.id, &all, 60_200), []);
    assert!(!client.is_valid(&"q", 1, 60_200), "not revived");
    assert_eq!(client.answered(newer.id, &all, 60_300), [], "a second answer");
    assert_eq!(client.answered(RequestId(999), &all, 60_300), [], "never sent");
}

#[test]
fn l4_each_broker_is_asked_every_20_s_for_all_its_queues() {
    let mut client = Client::new();
    assert_eq!(client.next_due_ms(), None);
    for (queue, broker) in [("a0", "a"), ("a1", "a"), ("b0", "b")] {
        client.want(queue, broker, 1, 100).unwrap();
    }
    let shown = |requests: Vec<Request<&'static str, &'static str>>| -> Vec<(&str, Vec<&str>)> {
        requests.into_iter().map(|request| (request.broker, request.queues)).collect()
    };
    let (a, b) = ("a", "b");
    let all = vec![(a, vec!["a0", "a1"]), (b, vec!["b0"])];
    assert_eq!(client.next_due_ms(), Some(100));
    assert_eq!(shown(client.due(100)), all);
    assert_eq!(client.next_due_ms(), Some(20_100));
    assert_eq!(shown(client.due(20_099)), []);
    assert_eq!(shown(client.due(20_100)), all);
    // A new queue is asked for at once, and its broker's others with it.
    client.want("a2", "a", 1, 25_000).unwrap();
    assert_eq!(shown(client.due(25_000)), [(a, vec!["a0", "a1", "a2"])]);
    assert_eq!(shown(client.due(40_100)), [(b, vec!["b0"])]);
    let release = client.forget(&["a0", "a1", "b0", "unknown"]);
    assert_eq!(release["a"], ["a0", "a1"]);
    assert_eq!(release["b"], ["b0"]);
    assert_eq!((release.len(), client.count()), (2, 1));
    assert_eq!(shown(client.due(60_100)), [(a, vec!["a2"])]);
    client.forget(&["a2"]);
    assert_eq!(client.next_due_ms(), None);
}

#[test]
fn l4_an_answer_that_fails_to_come_is_asked_for_again_in_a_second() {
    let mut client = wanting();
    let request = client.due(0).remove(0);
    client.failed(request.id, 3_000);
    assert_eq!(client.next_due_ms(), Some(4_000));
    assert_eq!(grant(&mut client, 4_000, 4_010, None), [granted(1)]);
    assert_eq!(client.next_due_ms(), Some(24_000));
    client.failed(request.id, 5_000);
    assert_eq!(client.next_due_ms(), Some(24_000), "it was told already");
}

#[test]
fn l4_granted_again_within_60_s_the_generation_goes_on_else_it_closes() {
    for (again_ms, goes_on) in [(60_000, true), (60_001, false)] {
        let mut client = wanting();
        grant(&mut client, 0, 0, None);
        assert!(!client.is_valid(&"q", 1, 31_000));
        let told = grant(&mut client, again_ms, again_ms, None);
        if goes_on {
            assert_eq!(told, [granted(1)]);
            assert!(client.is_valid(&"q", 1, again_ms));
            continue;
        }
        assert_eq!(told, [Told::Superseded { queue: "q", generation: 1 }]);
        assert!(!client.is_valid(&"q", 1, again_ms));
        // Nothing revives it; a new generation starts anew.
        assert_eq!(grant(&mut client, again_ms + 20_000, again_ms + 20_000, None), []);
        assert_eq!(client.want("q", "broker", 2, again_ms + 20_000), Err(Refusal::Busy));
        assert_eq!(client.forget(&["q"])["broker"], ["q"]);
        client.want("q", "broker", 2, again_ms + 20_000).unwrap();
        let now_ms = again_ms + 20_001;
        assert_eq!(grant(&mut client, now_ms, now_ms, None), [granted(2)]);
    }
}

#[test]
fn l4_the_same_fencing_token_proves_that_nobody_else_had_it() {
    let mut client = wanting();
    assert_eq!(grant(&mut client, 0, 0, Some(5)), [granted(1)]);
    assert_eq!(client.token(&"q", 1), Some(5));
    assert_eq!(client.token(&"q", 2), None);
    assert_eq!(grant(&mut client, 900_000, 900_000, Some(5)), [granted(1)]);
    let told = grant(&mut client, 1_800_000, 1_800_000, Some(6));
    assert_eq!(told, [Told::Superseded { queue: "q", generation: 1 }]);
    assert_eq!(client.token(&"q", 1), Some(5), "what it stores late carries its own token");
}

#[test]
fn l4_a_queue_being_closed_is_refreshed_until_its_hand_over_or_its_time() {
    let mut client = wanting();
    grant(&mut client, 0, 0, None);
    client.closing(&"q", 1, 10_000, 20_000);
    client.closing(&"q", 1, 15_000, 90_000); // does not prolong it
    assert_eq!(grant(&mut client, 20_000, 20_000, None), [renewed(1)]);
    assert_eq!(client.due(40_000), [], "20 s after the close it is not asked for any more");
    assert!(client.is_valid(&"q", 1, 50_000), "what was granted stands");
    assert!(!client.is_valid(&"q", 1, 50_001));
    assert_eq!(client.forget(&["q"])["broker"], ["q"]);
    assert_eq!(client.forget(&["q"]).len(), 0, "told once");
}

#[test]
fn l4_a_late_grant_of_a_queue_nobody_wants_is_to_be_given_back() {
    let mut client = wanting();
    let request = client.due(0).remove(0);
    client.forget(&["q"]);
    let all = [Answer { queue: "q", token: Some(1) }];
    assert_eq!(client.answered(request.id, &all, 10), [Told::Unwanted { queue: "q" }]);

    // Wanted again meanwhile: the old answer is not the new assignment's.
    client.want("q", "broker", 1, 20).unwrap();
    let request = client.due(20).remove(0);
    client.forget(&["q"]);
    client.want("q", "broker", 2, 30).unwrap();
    assert_eq!(client.answered(request.id, &all, 40), []);
    assert!(!client.is_valid(&"q", 2, 40));
    assert_eq!(grant(&mut client, 40, 40, None), [granted(2)]);
}

#[test]
fn l5_a_clock_that_steps_back_ends_the_grant_and_asks_again() {
    let mut client = wanting();
    grant(&mut client, 100_000, 100_000, None);
    let under_way = client.due(120_000).remove(0);
    assert!(client.is_valid(&"q", 1, 120_000));
    assert!(!client.is_valid(&"q", 1, 119_999), "one ms back");
    assert!(!client.is_valid(&"q", 1, 125_000), "and it stays ended");
    let all = [Answer { queue: "q", token: None }];
    assert_eq!(client.answered(under_way.id, &all, 125_000), [], "sent on the old clock");
    assert_eq!(client.next_due_ms(), Some(119_999));
    assert_eq!(grant(&mut client, 125_000, 125_000, None), [granted(1)]);
}

#[test]
fn l5_a_step_back_does_not_make_a_grant_younger() {
    // Granted at 100,000, 50 s old when the clock steps back an hour.
    for (after_ms, goes_on) in [(10_000, true), (10_001, false)] {
        let mut client = wanting();
        grant(&mut client, 4_000_000, 4_000_000, None);
        assert!(!client.is_valid(&"q", 1, 4_050_000));
        let now_ms = 400_000 + after_ms;
        client.is_valid(&"q", 1, 400_000);
        let told = grant(&mut client, now_ms, now_ms, None);
        let superseded = Told::Superseded { queue: "q", generation: 1 };
        assert_eq!(told, [if goes_on { granted(1) } else { superseded }], "{after_ms}");
    }
}

#[test]
fn any_times_are_taken() {
    for now_ms in [i64::MIN, i64::MAX, 0, i64::MIN, i64::MAX] {
        let mut client = wanting();
        grant(&mut client, now_ms, now_ms, None);
        client.closing(&"q", 1, now_ms, i64::MAX);
        for then_ms in [i64::MAX, i64::MIN, 0, -1] {
            client.is_valid(&"q", 1, then_ms);
            grant(&mut client, then_ms, then_ms, Some(1));
            client.failed(RequestId(1), then_ms);
        }
    }
}
