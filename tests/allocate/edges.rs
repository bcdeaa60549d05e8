//! The recorded edge cases: empty and null arguments, unknown clients, lists that are not sorted.

use std::collections::BTreeMap;

use lanekeeper::allocate::{Allocation, Members, NoShare, Route, SetupError, Strategy};
use lanekeeper::message_queue::MessageQueue;
use serde_json::Value;

use crate::golden::{strategy, text};
use crate::lines::lines;
use crate::nearby;

/// How an answer compares with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The same queues, or Java's exception of the same meaning.
    Same,
    /// Java answers no queues; here it is said why (A4).
    NotMember,
    /// Java gives the same share to all that bear the id; here nobody of them gets one (A4).
    Duplicate,
    /// A null name in a list, or a strategy without its rooms or list: nothing here can be null.
    Null,
    /// Java's class takes a list as it is; here it is sorted and freed of doubles first (A1).
    NotSorted,
}

struct Edge<'l> {
    line: &'l Value,
    queues: Option<Vec<(&'l str, i32)>>,
    clients: Vec<&'l str>,
    client: &'l str,
}

/// A list, an absent one counting as empty; nothing if a name in it is null.
fn pairs(value: &Value) -> Option<Vec<(&str, i32)>> {
    fn pair(pair: &Value) -> Option<(&str, i32)> {
        Some((pair[0].as_str()?, i32::try_from(pair[1].as_i64()?).ok()?))
    }
    value.as_array().map_or(Some(Vec::new()), |list| list.iter().map(pair).collect())
}

fn queues(pairs: &[(&str, i32)]) -> Vec<MessageQueue> {
    pairs.iter().map(|&(broker, id)| MessageQueue::new("T", broker, id).unwrap()).collect()
}

/// The text before the first `@`, none if it begins with `!`.
fn room(name: &str) -> Option<String> {
    let room = name.split_once('@').map_or("", |(room, _)| room);
    (!name.starts_with('!')).then(|| room.to_owned())
}

fn allocate(edge: &Edge<'_>) -> Result<Vec<MessageQueue>, NoShare> {
    let name = text(&edge.line["strategy"]);
    let strategy = match name {
        "CONFIG" => Strategy::Config([].into()),
        _ => strategy(name, &["room1"]),
    };
    let queues = queues(edge.queues.as_deref().unwrap_or_default());
    let route = Route::with_rooms(queues, |queue| room(queue.broker_name())).unwrap();
    let members = Members::with_rooms(edge.clients.iter().copied(), room).unwrap();
    let allocation = Allocation::new(strategy, route.into(), members.into()).unwrap();
    Ok(allocation.share(edge.client)?.iter().cloned().collect())
}

fn judge(line: &Value) -> Verdict {
    let clients = line["cids"].as_array().map_or(Vec::new(), |ids| ids.iter().map(text).collect());
    let client = line["cid"].as_str().unwrap_or("");
    let edge = Edge { line, queues: pairs(&line["mqs"]), clients, client };
    let Some(pairs) = &edge.queues else { return Verdict::Null };
    let answer = allocate(&edge);
    let label = format!("{line}: {answer:?}");
    if text(&line["strategy"]).ends_with("null_idcs") {
        return Verdict::Null;
    }
    if let Some(message) = line["msg"].as_str() {
        let expected = match message {
            "currentCID is empty" => NoShare::EmptyClientId,
            "mqAll is null or mqAll empty" => NoShare::NoQueues,
            "cidAll is null or cidAll empty" => NoShare::NoClients,
            _ => {
                let of = message.strip_prefix("Machine room is null for ").expect(&label);
                let of = of.replace("mq ", "").replace("consumer id ", "the client ");
                NoShare::NoRoom(of)
            }
        };
        assert_eq!(answer, Err(expected), "{label}");
        return Verdict::Same;
    }
    if line["result"].is_null() {
        assert_eq!((text(&line["strategy"]), answer), ("CONFIG", Ok(Vec::new())));
        return Verdict::Null;
    }
    if !edge.clients.contains(&edge.client) {
        assert_eq!(
            (answer, line["result"].as_array().unwrap().len()),
            (Err(NoShare::NotMember), 0)
        );
        return Verdict::NotMember;
    }
    if edge.clients.iter().filter(|id| **id == edge.client).count() > 1 {
        assert_eq!(answer, Err(NoShare::DuplicateClient), "{label}");
        return Verdict::Duplicate;
    }
    let sorted = queues(pairs).windows(2).all(|pair| pair[0] < pair[1]);
    if !sorted || !edge.clients.is_sorted() {
        assert!(answer.is_ok(), "{label}");
        return Verdict::NotSorted;
    }
    assert_eq!(answer, Ok(queues(&self::pairs(&line["result"]).unwrap())), "{label}");
    Verdict::Same
}

#[test]
fn edge_cases_are_those_of_the_java_classes() {
    let mut counts = BTreeMap::new();
    for line in lines("allocate.jsonl.gz").iter().filter(|line| line["case"] == "edge") {
        *counts.entry(judge(line)).or_insert(0) += 1;
    }
    let expected = [
        (Verdict::Same, 97),
        (Verdict::NotMember, 18),
        (Verdict::Duplicate, 2),
        (Verdict::Null, 30),
        (Verdict::NotSorted, 18),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
}

/// `CONFIG` looks at nothing, in Java as here: its list is the answer whoever asks.
#[test]
fn config_gives_its_list_to_whoever_asks() {
    let mut seen = 0;
    for line in lines("allocate.jsonl.gz").iter().filter(|line| line["case"] == "config") {
        let list = queues(&pairs(&line["list"]).unwrap());
        let route = Route::new(queues(&pairs(&line["mqs"]).unwrap())).unwrap();
        let ids = line["cids"].as_array().map_or(Vec::new(), |ids| ids.iter().map(text).collect());
        let strategy = Strategy::Config(list.clone().into());
        let members = Members::new(ids).unwrap();
        let allocation = Allocation::new(strategy, route.into(), members.into()).unwrap();
        let share = allocation.share(line["cid"].as_str().unwrap_or("")).unwrap();
        assert!(share.iter().eq(&list));
        assert_eq!(list, queues(&pairs(&line["result"]).unwrap()));
        let shares = allocation.shares().unwrap();
        assert!((0..shares.len()).all(|at| shares.queues(at).unwrap().eq(&list)));
        assert_eq!(shares.owners().len(), if shares.is_empty() { 0 } else { list.len() });
        seen += 1;
    }
    assert_eq!(seen, 2);
}

/// Names; and constructors that Java's refuse, which here are refused or cannot be written.
#[test]
fn names_and_constructors_are_those_of_the_java_classes() {
    let (mut names, mut refused) = (0, 0);
    for line in lines("allocate.jsonl.gz") {
        match text(&line["case"]) {
            "name" => {
                let strategy = match text(&line["strategy"]) {
                    "CONFIG" => Strategy::Config([].into()),
                    name => strategy(name, &[]),
                };
                assert_eq!(strategy.name(), text(&line["getName"]));
                names += 1;
            }
            "ctor" => {
                assert!(line["ex"].is_string());
                refused += 1;
            }
            _ => {}
        }
    }
    assert_eq!((names, refused), (7, 5));
    let inner = nearby(Strategy::Average);
    let error = lanekeeper::allocate::Nearby::new(inner).unwrap_err();
    assert_eq!(error, SetupError::Inner("MACHINE_ROOM_NEARBY-AVG"));
}
