//! Makes the bundled sample: the events of a web shop's orders, the same for the same seed.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};

use crate::random::Random;

/// The sample that ships with this program is `--make-sample` with this seed.
pub const SAMPLE_SEED: u64 = 20_260_302;
pub const SAMPLE_KEY: &str = "order_id";
pub const SAMPLE_SEQ: &str = "seq";
pub const SAMPLE: &[u8] = include_bytes!("../data/orders.csv.gz");

const ORDERS: u64 = 2_000;
const FIRST_ID: u64 = 417_003;
/// 2026-03-02T00:00:00Z, a Monday.
const FIRST_DAY_MS: u64 = 1_772_409_600_000;
const DAYS: u64 = 14;
const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;

const CHANNELS: [&str; 4] = ["web", "app", "phone", "marketplace"];
const WAREHOUSES: [&str; 3] = ["Łódź", "Saint-Étienne", "Bremen"];
/// With commas, quotes and more than ASCII, as free text is.
const NOTES: [&str; 5] = [
    "leave with the neighbour, please",
    "doorbell says \"Müller\"",
    "gift wrap; card: \"Alles Gute, 爸爸\"",
    "call before delivery",
    "2nd floor, left",
];

struct Row {
    at_ms: u64,
    order: u64,
    seq: u64,
    event: &'static str,
}

struct Order {
    number: u64,
    id: String,
    channel: &'static str,
    warehouse: &'static str,
    amount_cents: u64,
    note: &'static str,
}

/// Writes the sample, gzipped, to a file.
pub fn write_file(path: &Path, seed: u64) -> io::Result<()> {
    let mut packer = GzBuilder::new().write(File::create(path)?, Compression::best());
    packer.write_all(&make(seed)?)?;
    packer.finish()?.sync_all()
}

/// The sample as CSV text.
pub fn make(seed: u64) -> io::Result<Vec<u8>> {
    let mut random = Random::new(seed);
    let mut arrivals: Vec<u64> = (0..ORDERS).map(|_| arrival_ms(&mut random)).collect();
    arrivals.sort_unstable();
    let mut id = FIRST_ID;
    let mut orders = Vec::new();
    for number in 0..ORDERS {
        // With gaps, for not every number drawn becomes an order.
        id += 1 + random.below(12);
        orders.push(order(number, id, &mut random));
    }
    let mut rows = Vec::new();
    for (order, arrival) in orders.iter().zip(arrivals) {
        live_through(order.number, arrival, &mut random, &mut rows);
    }
    // By time, as a log is; the events of one order are in order already and stay so.
    rows.sort_by_key(|row| row.at_ms);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "timestamp",
        "order_id",
        "seq",
        "event",
        "channel",
        "warehouse",
        "amount_cents",
        "note",
    ])?;
    for row in rows {
        let order = &orders[usize::try_from(row.order).expect("a small number")];
        let is_first = row.seq == 0;
        writer.write_record([
            timestamp(row.at_ms).as_str(),
            order.id.as_str(),
            row.seq.to_string().as_str(),
            row.event,
            order.channel,
            order.warehouse,
            order.amount_cents.to_string().as_str(),
            if is_first { order.note } else { "" },
        ])?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// Orders come in by day more than by night: the best of two draws is nearer to the afternoon.
fn arrival_ms(random: &mut Random) -> u64 {
    let day = random.below(DAYS);
    let mut hour_ms = || 6 * HOUR_MS + random.below(18 * HOUR_MS);
    let (one, other) = (hour_ms(), hour_ms());
    let from_peak = |at: &u64| at.abs_diff(17 * HOUR_MS);
    FIRST_DAY_MS + day * DAY_MS + [one, other].into_iter().min_by_key(from_peak).unwrap_or(one)
}

fn order(number: u64, id: u64, random: &mut Random) -> Order {
    let mut pick = |from: &[&'static str]| from[random.below(from.len() as u64) as usize];
    let (channel, warehouse, note) = (pick(&CHANNELS), pick(&WAREHOUSES), pick(&NOTES));
    let amount_cents = 499 + random.below(40) * random.below(900);
    let note = if random.chance(0.15) { note } else { "" };
    let id = format!("SO-{id:06}");
    Order { number, id, channel, warehouse, amount_cents, note }
}

/// The life of one order, from the cart to the door, with what may go wrong on the way.
fn live_through(order: u64, arrival: u64, random: &mut Random, rows: &mut Vec<Row>) {
    let (mut at_ms, mut seq) = (arrival, 0);
    let mut then = |event, random: &mut Random, least_ms: u64, most_ms: u64| {
        at_ms += least_ms + random.below(most_ms - least_ms);
        rows.push(Row { at_ms, order, seq, event });
        seq += 1;
    };
    then("CREATED", random, 0, 1_000);
    while random.chance(0.3) {
        then("ITEM_ADDED", random, 5_000, 10 * MINUTE_MS);
    }
    then("PAYMENT_REQUESTED", random, 10_000, 5 * MINUTE_MS);
    while random.chance(0.12) {
        then("PAYMENT_DECLINED", random, 400, 20_000);
        then("PAYMENT_REQUESTED", random, 20_000, 3 * HOUR_MS);
    }
    if random.chance(0.05) {
        return then("CANCELLED", random, MINUTE_MS, DAY_MS);
    }
    then("PAID", random, 400, 30_000);
    if random.chance(0.06) {
        then("REVIEW_OPENED", random, 1_000, MINUTE_MS);
        then("REVIEW_CLEARED", random, HOUR_MS, 20 * HOUR_MS);
    }
    while random.chance(0.08) {
        then("BACKORDERED", random, MINUTE_MS, HOUR_MS);
        then("RESTOCKED", random, 6 * HOUR_MS, 3 * DAY_MS);
    }
    then("PICKED", random, 20 * MINUTE_MS, 9 * HOUR_MS);
    then("PACKED", random, 2 * MINUTE_MS, 2 * HOUR_MS);
    then("SHIPPED", random, HOUR_MS, 12 * HOUR_MS);
    while random.chance(0.45) {
        then("IN_TRANSIT", random, 2 * HOUR_MS, 20 * HOUR_MS);
    }
    then("OUT_FOR_DELIVERY", random, 4 * HOUR_MS, 14 * HOUR_MS);
    while random.chance(0.1) {
        then("DELIVERY_FAILED", random, HOUR_MS, 8 * HOUR_MS);
        then("OUT_FOR_DELIVERY", random, 14 * HOUR_MS, 24 * HOUR_MS);
    }
    then("DELIVERED", random, 10 * MINUTE_MS, 8 * HOUR_MS);
    if random.chance(0.07) {
        then("RETURN_REQUESTED", random, 2 * HOUR_MS, 5 * DAY_MS);
        then("RETURN_RECEIVED", random, DAY_MS, 6 * DAY_MS);
        then("REFUNDED", random, HOUR_MS, 2 * DAY_MS);
    }
}

/// ISO 8601, UTC, with milliseconds.
fn timestamp(at_ms: u64) -> String {
    let (days, in_day) = (at_ms / DAY_MS, at_ms % DAY_MS);
    let (year, month, day) = civil_date(days);
    let (hour, minute) = (in_day / HOUR_MS, in_day % HOUR_MS / MINUTE_MS);
    let (second, milli) = (in_day % MINUTE_MS / 1_000, in_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Days since 1970-01-01 to year, month, day: Howard Hinnant, "chrono-compatible low-level date
/// algorithms", `civil_from_days`, for days that are not negative.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
