//! Times of many runs, over ranks.

/// Microseconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Half of the runs took no longer.
    pub median: f64,
    /// 99 of 100 runs took no longer.
    pub p99: f64,
    /// The longest run.
    pub max: f64,
}

/// Of runs that all ranks did together, each as long as its slowest rank took. `None` without a run.
pub fn over_ranks(ranks: &[Vec<f64>]) -> Option<Summary> {
    summary(ranks, |times| times.fold(0.0, f64::max))
}

/// Of runs that each rank began on its own, each as long as the rank took that began last and so waited for nobody.
pub fn of_the_last(ranks: &[Vec<f64>]) -> Option<Summary> {
    summary(ranks, |times| times.fold(f64::INFINITY, f64::min))
}

fn summary(
    ranks: &[Vec<f64>],
    of: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
) -> Option<Summary> {
    let runs = ranks.iter().map(Vec::len).min()?;
    let one = |run: usize| of(&mut ranks.iter().map(|times| times[run]));
    let mut times: Vec<f64> = (0..runs).map(one).collect();
    times.sort_by(f64::total_cmp);
    // The smallest time that at least this share of the runs did not exceed.
    let at = |share: f64| {
        let rank = (share * runs as f64).ceil() as usize;
        times.get(rank.max(1) - 1).copied()
    };
    Some(Summary {
        median: at(0.5)?,
        p99: at(0.99)?,
        max: *times.last()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_as_its_slowest_rank() {
        let summary = over_ranks(&[vec![1.0, 5.0, 2.0], vec![3.0, 1.0, 2.5]]);
        let expected = Summary {
            median: 3.0,
            p99: 5.0,
            max: 5.0,
        };
        assert_eq!(summary, Some(expected));
    }

    #[test]
    fn a_run_that_ranks_began_apart_counts_as_the_rank_that_waited_least() {
        let summary = of_the_last(&[vec![1.0, 5.0, 2.0], vec![3.0, 1.0, 2.5]]).unwrap();
        assert_eq!((summary.median, summary.max), (1.0, 2.0));
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let summary = over_ranks(&[times]).unwrap();
        assert_eq!(
            (summary.median, summary.p99, summary.max),
            (100.0, 198.0, 200.0)
        );
        assert_eq!(over_ranks(&[]), None);
        assert_eq!(over_ranks(&[vec![]]), None);
    }
}
