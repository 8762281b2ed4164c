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
    let holders = match (of.owner.scope, of.owner.graphs) {
        (false, 0) => "eager".to_owned(),
        (false, 1) => "1 graph".to_owned(),
        (false, graphs) => format!("{graphs} graphs"),
        (true, graphs) => format!("capture scope, {graphs} graphs"),
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
