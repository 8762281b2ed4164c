//! Time against bytes, as an SVG picture that needs nothing else.

use super::args::Operation;
use super::report::{Report, Row};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 8] = [
    "#1b6ca8", "#b03a2e", "#7fb3d5", "#e59866", "#1e8449", "#7d3c98", "#616a6b", "#b7950b",
];

/// One line of the picture: its name, and (bytes, microseconds) from left to right.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    name: String,
    /// Whether it is not an operation of ours at its sizes.
    dashed: bool,
    points: Vec<(f64, f64)>,
}

/// Draws the medians in a graph. `None` when nothing was timed.
pub fn draw(report: &Report) -> Option<String> {
    let lines = lines(report);
    let points: Vec<(f64, f64)> = lines.iter().flat_map(|line| line.points.clone()).collect();
    let largest = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).fold(f64::NAN, f64::max);
    let (bytes, micros) = (largest(|p| p.0), largest(|p| p.1));
    if !(bytes > 0.0 && micros > 0.0) {
        return None;
    }
    let smallest = points.iter().map(|p| p.0).fold(bytes, f64::min);
    let span = (bytes / smallest).log2().max(1.0);
    let x = |b: f64| LEFT + (b / smallest).log2() / span * (WIDTH - LEFT - RIGHT);
    let top = (micros / 5.0).ceil() * 5.0;
    let y = |t: f64| HEIGHT - BOTTOM - t / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = String::new();
    let mut put = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    put(format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">"#
    ));
    put(r#"<rect width="100%" height="100%" fill="white"/>"#.to_owned());
    put(format!(
        r#"<text x="{LEFT}" y="20">µs of one operation in a graph of {}, median, slowest of {} ranks; {}</text>"#,
        report.operations_in_graph,
        report.ranks,
        escaped(&report.devices.join(", "))
    ));
    for step in 0..=5 {
        let t = top * f64::from(step) / 5.0;
        put(format!(
            r##"<line x1="{LEFT}" x2="{:.1}" y1="{:.1}" y2="{:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{t:.0}</text>"##,
            WIDTH - RIGHT,
            y(t),
            y(t),
            LEFT - 6.0,
            y(t) + 4.0
        ));
    }
    let mut ticks: Vec<f64> = points.iter().map(|p| p.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let mut free = f64::MIN;
    for bytes in ticks.into_iter().filter(|b| {
        let fits = x(*b) > free;
        if fits {
            free = x(*b) + 44.0;
        }
        fits
    }) {
        put(format!(
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x(bytes),
            HEIGHT - BOTTOM + 18.0,
            kibibytes(bytes)
        ));
    }
    put(format!(
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">KiB from one rank to one other</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0
    ));
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1)))
            .collect();
        let dashes = match line.dashed {
            true => r#" stroke-dasharray="5 4""#,
            false => "",
        };
        put(format!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{}"/>"#,
            path.join(" ")
        ));
        if let Some(last) = line.points.last() {
            put(format!(
                r#"<text x="{:.1}" y="{:.1}" fill="{colour}">{}</text>"#,
                x(last.0) + 6.0,
                y(last.1) + 4.0,
                escaped(&line.name)
            ));
        }
    }
    put("</svg>".to_owned());
    Some(svg)
}

/// Our operations, the peers' and, across the whole width, the floors.
fn lines(report: &Report) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut put = |name: String, dashed: bool, point: (f64, f64)| match lines
        .iter_mut()
        .find(|line| line.name == name)
    {
        Some(line) => line.points.push(point),
        None => lines.push(Line {
            name,
            dashed,
            points: vec![point],
        }),
    };
    let sized = |row: &&Row| row.operation != Operation::Floor.name();
    let sizes = || report.rows.iter().filter(sized);
    for row in &report.rows {
        let Some(graph) = row.graph else { continue };
        let name = format!("{}, {}", row.operation, row.transport);
        if sized(&row) {
            put(name, false, (row.bytes as f64, graph.median));
        } else {
            let ends = [
                sizes().map(|row| row.bytes).min(),
                sizes().map(|row| row.bytes).max(),
            ];
            for end in ends.into_iter().flatten() {
                put(name.clone(), true, (end as f64, graph.median));
            }
        }
    }
    for peer in &report.peers.rows {
        let same = |row: &&Row| row.operation == peer.operation && row.batch == peer.batch;
        if let Some(row) = report.rows.iter().find(same) {
            let point = (row.bytes as f64, peer.graph.median);
            put(format!("{}, {}", peer.operation, peer.name), true, point);
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

fn kibibytes(bytes: f64) -> String {
    format!("{:.0}", bytes / 1024.0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::peers::{Peer, Peers};
    use super::super::series::Summary;
    use super::*;

    fn report(rows: &[(&'static str, usize, Option<f64>)]) -> Report {
        let row = |&(transport, bytes, median): &(&'static str, usize, Option<f64>)| Row {
            operation: "gather",
            transport,
            batch: 1,
            bytes,
            right: true,
            graph: median.map(|median| Summary {
                median,
                p99: median,
                max: median,
            }),
            blocking: None,
        };
        Report {
            schema: 1,
            driver: "x".to_owned(),
            emulated: false,
            devices: vec!["A&B".to_owned()],
            ranks: 2,
            processes: true,
            shape: [64, 576, 512],
            operations_in_graph: 40,
            replays: 1,
            rows: rows.iter().map(row).collect(),
            peers: Peers::default(),
            ok: true,
        }
    }

    #[test]
    fn every_operation_and_transport_is_a_line_by_bytes() {
        let report = report(&[
            ("push", 4096, Some(5.0)),
            ("pull", 2048, Some(6.0)),
            ("push", 1024, Some(4.0)),
        ]);
        let push = Line {
            name: "gather, push".to_owned(),
            dashed: false,
            points: vec![(1024.0, 4.0), (4096.0, 5.0)],
        };
        assert_eq!(lines(&report)[0], push);
        let svg = draw(&report).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2);
        // 1 KiB is at the left edge; 4 µs of 10 lie two fifths up.
        assert!(svg.contains("points=\"60.0,250.0 570.0,215.0\""), "{svg}");
        assert!(svg.contains("A&amp;B") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn peers_lie_at_our_sizes_and_the_floor_lies_across() {
        let mut report = report(&[("push", 4096, Some(5.0)), ("push", 1024, Some(4.0))]);
        report.rows[1].batch = 3;
        let floor = Row {
            operation: "floor",
            bytes: 512,
            ..report.rows[1].clone()
        };
        report.rows.push(floor);
        let graph = report.rows[0].graph.unwrap();
        report.peers.rows.push(Peer {
            operation: "gather".to_owned(),
            name: "other".to_owned(),
            batch: 3,
            right: true,
            graph,
            blocking: None,
        });
        let drawn = lines(&report);
        let of = |name: &str| drawn.iter().find(|line| line.name == name).unwrap();
        assert_eq!(of("floor, push").points, [(1024.0, 4.0), (4096.0, 4.0)]);
        assert_eq!(of("gather, other").points, [(1024.0, 5.0)]);
        assert!(of("gather, other").dashed && !of("gather, push").dashed);
    }

    #[test]
    fn what_was_not_timed_is_not_drawn() {
        assert_eq!(draw(&report(&[("push", 4096, None)])), None);
        assert_eq!(draw(&report(&[])), None);
    }
}
