//! Time against bytes, as an SVG picture that needs nothing else: a panel for each operation, both axes logarithmic.

use super::args::Operation;
use super::report::{Report, Row};

const WIDTH: f64 = 860.0;
/// Of one panel.
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 310.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;
/// Least distance of two lines' names.
const NAME: f64 = 15.0;
const COLOURS: [&str; 7] = [
    "#1b6ca8", "#b03a2e", "#616a6b", "#7fb3d5", "#1e8449", "#7d3c98", "#b7950b",
];

/// One line of a panel: its name, and (bytes, microseconds) from left to right.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    name: String,
    /// Whether it is not an operation of ours at its sizes.
    dashed: bool,
    points: Vec<(f64, f64)>,
}

/// An axis: from a power of two to a power of two, mapped to coordinates.
#[derive(Debug, Clone, Copy)]
struct Axis {
    /// Base-2 logarithms of the ends.
    ends: (f64, f64),
    /// Where the ends lie in the picture.
    at: (f64, f64),
}

impl Axis {
    fn around(values: impl Iterator<Item = f64> + Clone, at: (f64, f64)) -> Option<Self> {
        let smallest = values.clone().fold(f64::INFINITY, f64::min);
        let largest = values.fold(f64::NEG_INFINITY, f64::max);
        if !(smallest > 0.0 && largest.is_finite()) {
            return None;
        }
        let from = smallest.log2().floor();
        let to = largest.log2().ceil().max(from + 1.0);
        let ends = (from, to);
        Some(Self { ends, at })
    }

    fn place(self, value: f64) -> f64 {
        let share = (value.log2() - self.ends.0) / (self.ends.1 - self.ends.0);
        self.at.0 + share * (self.at.1 - self.at.0)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        (self.ends.0 as i32..=self.ends.1 as i32)
            .map(f64::from)
            .map(f64::exp2)
    }
}

/// Draws the medians in a graph. `None` when nothing was timed.
pub fn draw(report: &Report) -> Option<String> {
    let panels: Vec<String> = [Operation::Gather, Operation::Reduce]
        .iter()
        .filter_map(|operation| panel(report, operation.name()))
        .collect();
    if panels.is_empty() {
        return None;
    }
    let height = HEIGHT * panels.len() as f64;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
"#
    );
    for (index, panel) in panels.iter().enumerate() {
        let down = HEIGHT * index as f64;
        svg.push_str(&format!(
            "<g transform=\"translate(0 {down})\">\n{panel}</g>\n"
        ));
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn panel(report: &Report, operation: &str) -> Option<String> {
    let lines = lines(report, operation);
    let points = lines.iter().flat_map(|line| &line.points);
    let x = Axis::around(points.clone().map(|point| point.0), (LEFT, WIDTH - RIGHT))?;
    let y = Axis::around(points.map(|point| point.1), (HEIGHT - BOTTOM, TOP))?;
    let mut svg = String::new();
    let mut put = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    put(format!(
        r#"<text x="{LEFT}" y="20" font-weight="bold">{operation}</text>"#
    ));
    put(format!(
        r#"<text x="{LEFT}" y="38">µs of one operation in a graph of {}, median, slowest of {} ranks; {}</text>"#,
        report.operations_in_graph,
        report.ranks,
        escaped(&report.devices.join(", "))
    ));
    for tick in y.ticks() {
        let at = y.place(tick);
        put(format!(
            r##"<line x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{tick}</text>"##,
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        ));
    }
    for tick in x.ticks() {
        put(format!(
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x.place(tick),
            HEIGHT - BOTTOM + 18.0,
            tick / 1024.0
        ));
    }
    put(format!(
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">KiB from one rank to one other</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0
    ));
    let ends = lines
        .iter()
        .map(|line| line.points.last().map_or(TOP, |last| y.place(last.1)));
    let names = apart(&ends.collect::<Vec<_>>());
    for ((line, name), colour) in lines.iter().zip(names).zip(COLOURS.iter().cycle()) {
        let places = line
            .points
            .iter()
            .map(|p| format!("{:.1},{:.1}", x.place(p.0), y.place(p.1)));
        let dashes = match line.dashed {
            true => r#" stroke-dasharray="5 4""#,
            false => "",
        };
        put(format!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{}"/>"#,
            places.collect::<Vec<_>>().join(" ")
        ));
        put(format!(
            r#"<text x="{:.1}" y="{:.1}" fill="{colour}">{}</text>"#,
            WIDTH - RIGHT + 8.0,
            name + 4.0,
            escaped(&line.name)
        ));
    }
    Some(svg)
}

/// The places, in the same order, moved down where they would cover one another.
fn apart(places: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut moved = places.to_vec();
    let mut free = f64::NEG_INFINITY;
    for index in order {
        moved[index] = places[index].max(free);
        free = moved[index] + NAME;
    }
    moved
}

/// Our transports, the peers' and, across the whole width, the floors.
fn lines(report: &Report, operation: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut put = |name: &str, dashed: bool, point: (f64, f64)| match lines
        .iter_mut()
        .find(|line| line.name == name)
    {
        Some(line) => line.points.push(point),
        None => lines.push(Line {
            name: name.to_owned(),
            dashed,
            points: vec![point],
        }),
    };
    let own: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| row.operation == operation)
        .collect();
    for row in &own {
        if let Some(graph) = row.graph {
            put(row.transport, false, (row.bytes as f64, graph.median));
        }
    }
    for peer in report
        .peers
        .rows
        .iter()
        .filter(|peer| peer.operation == operation)
    {
        if let Some(row) = own.iter().find(|row| row.batch == peer.batch) {
            put(&peer.name, true, (row.bytes as f64, peer.graph.median));
        }
    }
    let sizes = || {
        own.iter()
            .filter(|row| row.graph.is_some())
            .map(|row| row.bytes)
    };
    for row in report
        .rows
        .iter()
        .filter(|row| row.operation == Operation::Floor.name())
    {
        let Some(graph) = row.graph else { continue };
        for end in [sizes().min(), sizes().max()].into_iter().flatten() {
            put(
                &format!("floor, {}", row.transport),
                true,
                (end as f64, graph.median),
            );
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
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
            alone: None,
            blocking: None,
        };
        Report {
            schema: 1,
            driver: "x".to_owned(),
            emulated: false,
            devices: vec!["A&B".to_owned()],
            ranks: 2,
            processes: true,
            shared: false,
            shape: [64, 576, 512],
            operations_in_graph: 40,
            replays: 1,
            rows: rows.iter().map(row).collect(),
            peers: Peers::default(),
            ok: true,
        }
    }

    #[test]
    fn every_transport_is_a_line_by_bytes() {
        let report = report(&[
            ("push", 4096, Some(5.0)),
            ("pull", 2048, Some(6.0)),
            ("push", 1024, Some(4.0)),
        ]);
        let push = Line {
            name: "push".to_owned(),
            dashed: false,
            points: vec![(1024.0, 4.0), (4096.0, 5.0)],
        };
        assert_eq!(lines(&report, "gather")[0], push);
        assert_eq!(lines(&report, "reduce"), []);
        let svg = draw(&report).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2);
        // 1 KiB is at the left edge; 4 µs, of 4 to 8, is at the bottom.
        assert!(svg.contains("points=\"60.0,350.0 550.0,253.4\""), "{svg}");
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
            alone: graph,
            blocking: None,
        });
        let drawn = lines(&report, "gather");
        let of = |name: &str| drawn.iter().find(|line| line.name == name).unwrap();
        assert_eq!(of("floor, push").points, [(1024.0, 4.0), (4096.0, 4.0)]);
        assert_eq!(of("other").points, [(1024.0, 5.0)]);
        assert!(of("other").dashed && !of("push").dashed);
    }

    #[test]
    fn names_do_not_cover_one_another() {
        assert_eq!(apart(&[100.0, 98.0, 300.0]), [113.0, 98.0, 300.0]);
    }

    #[test]
    fn what_was_not_timed_is_not_drawn() {
        assert_eq!(draw(&report(&[("push", 4096, None)])), None);
        assert_eq!(draw(&report(&[])), None);
    }
}
