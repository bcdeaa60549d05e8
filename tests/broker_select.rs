//! Queue selection against answers recorded from upstream's Java class.
//!
//! `tests/golden/selectors.jsonl.gz` was written by `SelectMessageQueueByHash` of Apache RocketMQ
//! (commit 8fc57f1468d1) on JDK 17: `t` names the type of the key, `v` is its value, `n` the number
//! of queues, `hash` its `hashCode`, `sel` the index chosen, or `ex` the exception thrown.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use lanekeeper::{java, select};
use serde_json::Value;

fn golden_lines() -> Vec<Value> {
    let packed: &[u8] = include_bytes!("golden/selectors.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("the golden file is gzipped UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

/// The `hashCode` of the key of a line, computed here; None where Java had no key at all.
fn key_hash(kind: &str, value: &Value) -> Option<i32> {
    let integer = || value.as_i64().expect("an integer key");
    let narrow = || i32::try_from(integer()).expect("a key of 32 bits at most");
    match kind {
        "string" => Some(java::string_hash(value.as_str().expect("a string key"))),
        "long" => Some(java::long_hash(integer())),
        "bool" => Some(java::boolean_hash(value.as_bool().expect("a boolean key"))),
        "double_bits" => Some(java::double_hash(f64::from_bits(integer().cast_unsigned()))),
        "int" | "short" | "byte" | "char_code" | "hash" => Some(narrow()),
        "null" => None,
        other => panic!("the golden file has a key type this test does not know: {other}"),
    }
}

#[test]
fn every_golden_line_selects_the_same_queue() {
    let mut checked: BTreeMap<String, u32> = BTreeMap::new();
    for line in golden_lines() {
        let kind = line["t"].as_str().expect("every line names its type");
        if kind == "machine_room_selector" {
            continue; // Upstream's answer is always null: there is nothing to compute.
        }
        let queue_count = u32::try_from(line["n"].as_u64().unwrap()).unwrap();
        let Some(hash) = key_hash(kind, &line["v"]) else {
            // A missing key cannot be expressed: `by_key` takes a `&str`.
            assert_eq!(line["ex"], "java.lang.NullPointerException");
            continue;
        };
        assert_eq!(i64::from(hash), line["hash"].as_i64().unwrap(), "{line}");
        match line.get("ex") {
            Some(_) => assert_eq!(select::by_hash(hash, queue_count), Err(select::NoQueues)),
            None => {
                let index = u64::from(select::by_hash(hash, queue_count).unwrap());
                assert_eq!(Some(index), line["sel"].as_u64(), "{line}");
            }
        }
        *checked.entry(kind.to_owned()).or_default() += 1;
    }
    // Guards the test itself: a truncated file would pass with nothing compared.
    assert_eq!(checked["string"], 280);
    assert_eq!(checked.values().sum::<u32>(), 745);
}
