//! The text form.

use std::fmt;

use slabfence::status::{Bytes, Channel, Document, Pool};

use super::Report;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for document in &self.processes {
            process(document, &mut lines);
        }
        lines.extend(self.failures.iter().map(|why| format!("NO ANSWER: {why}")));
        f.write_str(&lines.join("\n"))
    }
}

/// Words of another process, on one line and without what a terminal would obey.
fn plain(words: &str) -> String {
    let plain = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    words.chars().map(plain).collect()
}

fn process(of: &Document, lines: &mut Vec<String>) {
    let (process, version) = (of.process, plain(&of.version));
    let none = if of.pools.is_empty() {
        ": no pools"
    } else {
        ""
    };
    lines.push(format!("process {process}, slabfence {version}{none}"));
    for one in &of.pools {
        pool(one, lines);
    }
    let failures = of.failures.iter().map(|why| plain(why));
    lines.extend(failures.map(|why| format!("  a pool: {why}")));
}

fn pool(of: &Pool, lines: &mut Vec<String>) {
    lines.push(format!(
        "  pool {}: rank {} of {}, device {} ({}, {}), {}: {}, {}",
        of.number,
        of.rank,
        of.world,
        of.device,
        plain(&of.device_name),
        plain(&of.uuid),
        plain(&of.transport),
        plain(&of.phase),
        plain(&of.health)
    ));
    lines.push(format!(
        "    memory: {}; {} of peers, {} of the host",
        kinds(&of.bytes),
        size(of.imported_bytes),
        size(of.host_bytes)
    ));
    lines.push(format!(
        "    waits: warn after {}, fail after {}",
        limit(of.warn_seconds),
        limit(of.fail_seconds)
    ));
    let each = of
        .channels
        .first()
        .map_or(String::new(), |one| format!(", each {}", kinds(&one.bytes)));
    lines.push(format!(
        "    channels: {} of {}{each}",
        of.channels.len(),
        of.max_channels
    ));
    lines.extend(
        of.unanswered
            .iter()
            .map(|why| format!("    no epochs: {}", plain(why))),
    );
    for one in &of.channels {
        channel(one, lines);
    }
}

fn channel(of: &Channel, lines: &mut Vec<String>) {
    let graphs = match of.owner.graphs {
        0 => None,
        1 => Some("1 graph".to_owned()),
        graphs => Some(format!("{graphs} graphs")),
    };
    let scope = of.owner.scope.then(|| "capture scope".to_owned());
    let holders: Vec<String> = scope.into_iter().chain(graphs).collect();
    let holders = match holders.is_empty() {
        true => "eager".to_owned(),
        false => holders.join(", "),
    };
    let device = match (of.epoch, of.begun, of.running, of.resets) {
        (Some(epoch), Some(begun), Some(running), Some(resets)) => {
            let running = if running { " (one runs)" } else { "" };
            format!("epoch {epoch}, {begun} begun{running}, {resets} resets, ")
        }
        _ => String::new(),
    };
    lines.push(format!(
        "      {}: {holders}; {device}{} launched, {} recorded",
        plain(&of.name),
        of.launched,
        of.recorded
    ));
    for (kind, record) in [("warning", &of.warning), ("FAULT", &of.fault)] {
        let record = record.iter().map(|record| plain(&record.words));
        lines.extend(record.map(|words| format!("        {kind}: {words}")));
    }
}

fn kinds(of: &Bytes) -> String {
    let kinds = [
        ("local", of.local),
        ("signal", of.signal),
        ("inbox", of.inbox),
        ("outbox", of.outbox),
    ];
    let kinds = kinds.iter().filter(|(_, bytes)| *bytes > 0);
    let kinds: Vec<String> = kinds
        .map(|(kind, bytes)| format!("{kind} {}", size(*bytes)))
        .collect();
    match kinds.is_empty() {
        true => size(of.total),
        false => format!("{} ({})", size(of.total), kinds.join(", ")),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn limit(seconds: f64) -> String {
    match seconds {
        0.0 => "never".to_owned(),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(scope: bool, graphs: u64, running: bool, warning: Option<&str>) -> Vec<String> {
        let bytes = json!({ "local": 8704, "signal": 0, "inbox": 0, "outbox": 0, "total": 8704 });
        let record = |words: &str| {
            json!({
                "words": words, "cause": null, "operation": null, "epoch": 7, "late_rank": 1, "late_ranks": [1],
                "cta": 0, "phase": 0, "expected": null, "seen": null, "waited_seconds": 5.0,
            })
        };
        let told = json!({
            "name": "decode", "owner": { "scope": scope, "graphs": graphs }, "epoch": 7, "begun": 5, "running": running,
            "resets": 1, "launched": 2, "recorded": 3, "bytes": bytes, "host_bytes": 256,
            "warning": warning.map(record), "fault": null,
        });
        let mut lines = Vec::new();
        let of = serde_json::from_value(told).expect("a channel");
        channel(&of, &mut lines);
        lines
    }

    #[test]
    fn a_channels_line_tells_what_holds_it_and_what_it_has_done() {
        let told = |scope, graphs| {
            let lines = lines(scope, graphs, false, None);
            let [line] = &lines[..] else {
                panic!("{lines:?}")
            };
            let line = line.strip_prefix("      decode: ").expect("its name");
            let (holders, done) = line.split_once("; ").expect("what it has done");
            assert_eq!(done, "epoch 7, 5 begun, 1 resets, 2 launched, 3 recorded");
            holders.to_owned()
        };
        assert_eq!(told(false, 0), "eager");
        assert_eq!(told(false, 1), "1 graph");
        assert_eq!(told(false, 2), "2 graphs");
        assert_eq!(told(true, 0), "capture scope");
        assert_eq!(told(true, 1), "capture scope, 1 graph");
    }

    #[test]
    fn a_wait_that_goes_on_has_a_line_of_its_own() {
        let lines = lines(false, 0, true, Some("rank 1 is late\u{1b}"));
        let first =
            "      decode: eager; epoch 7, 5 begun (one runs), 1 resets, 2 launched, 3 recorded";
        assert_eq!(lines, [first, "        warning: rank 1 is late\\u{1b}"]);
    }
}
