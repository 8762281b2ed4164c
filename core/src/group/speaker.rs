//! Whose a line of a log is, or a report.

use std::fmt;

use super::Rank;

/// How it begins: a process may have pools of several groups, and as many ranks of each as it has threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub rank: Rank,
    /// Number of the pool in this process, the one that its status has; `None` for what is of no pool.
    pub pool: Option<u64>,
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rank.fmt(f)?;
        self.pool.map_or(Ok(()), |pool| write!(f, ", pool {pool}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_the_rank_and_the_pool_where_there_is_one() {
        let said = |pool| {
            Speaker {
                rank: Rank(3),
                pool,
            }
            .to_string()
        };
        assert_eq!(
            (said(Some(2)), said(None)),
            ("rank 3, pool 2".to_owned(), "rank 3".to_owned())
        );
    }
}
