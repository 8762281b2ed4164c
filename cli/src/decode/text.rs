//! A report in words.

use std::fmt;

use super::report::{Batch, Report};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "{name:<12}{value}");
        line("driver", self.driver.clone())?;
        if self.emulated {
            let why = match &self.emulated_because {
                Some(why) => format!("no real driver was used: {why}"),
                None => "as asked".to_owned(),
            };
            line("", format!("EMULATED on the CPU, {why}"))?;
        }
        line(
            "devices",
            format!("{}: {}", self.devices.len(), grouped(&self.devices)),
        )?;
        let keys: Vec<String> = self.shards.iter().map(usize::to_string).collect();
        line(
            "ranks",
            format!(
                "{} {}, {} of {} heads each; {} keys, {}: {}",
                self.ranks,
                if self.processes {
                    "processes"
                } else {
                    "threads"
                },
                self.heads / self.ranks,
                self.heads,
                self.keys,
                self.sharding,
                keys.join(" + ")
            ),
        )?;
        line("data", format!("{}, {}", self.data, self.element))?;
        line(
            "operations",
            format!(
                "{} in a graph of {} ({}), {}",
                self.operations,
                if self.layers == 1 {
                    "1 layer".to_owned()
                } else {
                    format!("{} layers", self.layers)
                },
                self.transport,
                nodes(self.kernel_nodes_per_operation)
            ),
        )?;
        line(
            "replays",
            format!(
                "{} of each graph, every one compared with the eager pass",
                self.replays
            ),
        )?;
        for batch in &self.batches {
            line(
                &format!("batch {}", batch.batch),
                batch.words(self.tolerance),
            )?;
            for difference in &batch.differences {
                line("", difference.clone())?;
            }
            if let Some(times) = batch.gpu_microseconds {
                line(
                    "",
                    format!(
                        "GPU time in a graph, slowest rank: gather {:.2} us, reduce-scatter {:.2} us, whole step {:.2} us",
                        times.gather, times.reduce_scatter, times.step
                    ),
                )?;
            }
        }
        if self.time_asked && self.emulated {
            line("time", "not measured: the machine is EMULATED".to_owned())?;
        }
        line(
            "error",
            format!(
                "{:.3e} at most, {:.3e} allowed",
                self.max_abs_error, self.tolerance
            ),
        )?;
        write!(
            f,
            "{:<12}{}",
            "result",
            if self.ok { "ok" } else { "WRONG" }
        )
    }
}

impl Batch {
    fn words(&self, tolerance: f64) -> String {
        format!(
            "gathered heads {}, eager and graph {}, largest error {:.3e}{}",
            if self.gathered_exact {
                "exact"
            } else {
                "WRONG"
            },
            if self.bit_identical_eager_and_graph {
                "bit-identical"
            } else {
                "DIFFERENT"
            },
            self.max_abs_error,
            if self.max_abs_error <= tolerance {
                ""
            } else {
                ": TOO LARGE"
            }
        )
    }
}

fn nodes(each: f64) -> String {
    match each {
        1.0 => "1 kernel node each".to_owned(),
        _ => format!("{each:.3} kernel nodes each: WRONG"),
    }
}

/// Equal names once, with their number.
fn grouped(names: &[String]) -> String {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let parts = counts.iter().map(|(name, count)| match count {
        1 => (*name).clone(),
        _ => format!("{count} x {name}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_device_names_are_counted() {
        let names = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(grouped(&names), "2 x a, b");
    }
}
