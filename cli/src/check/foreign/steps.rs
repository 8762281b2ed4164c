//! Reads steps: what each enqueues must be there.

use toml::Spanned;

use super::file::{Copy, Step};
use super::plan::{Place, Task, Work};
use super::read::{Reader, line};
use super::rights::Deed;
use crate::failure::Failure;

impl Reader<'_> {
    /// The number of an event that a step of a rank names.
    fn event(
        &mut self,
        name: &Spanned<String>,
        rank: u32,
        records: bool,
    ) -> Result<usize, Failure> {
        let (word, next) = (name.get_ref(), self.event_ranks.len());
        match self.events.get(word) {
            Some(&event) if self.event_ranks[event] == rank => Ok(event),
            Some(&event) => {
                let words = format!("event `{word}` is of rank {}", self.event_ranks[event]);
                Err(self.wrong(name, words))
            }
            None if records => {
                self.events.insert(word.clone(), next);
                self.event_ranks.push(rank);
                Ok(next)
            }
            None => {
                let words = format!("no step before this one records event `{word}`");
                Err(self.wrong(name, words))
            }
        }
    }

    /// The number of a graph of a rank.
    fn graph(&self, name: &Spanned<String>, rank: u32) -> Result<usize, Failure> {
        let words = match self.graphs.get(name.get_ref()) {
            Some(&(graph, of)) if of == rank => return Ok(graph),
            Some((_, of)) => format!("graph `{}` is of rank {of}", name.get_ref()),
            None => format!("there is no graph `{}`", name.get_ref()),
        };
        Err(self.wrong(name, words))
    }

    fn copy(&self, copy: &Copy, rank: u32, places: &[Place]) -> Result<Work, Failure> {
        let size = copy.size;
        let from = self.permitted((&copy.from, size), rank, Deed::Reads, places)?;
        let to = self.permitted((&copy.to, size), rank, Deed::Writes, places)?;
        // What the driver then does is not defined.
        if from.0 == to.0 && from.1.abs_diff(to.1) < size {
            let words = format!(
                "{size} bytes from {} on and from {} on overlap, and a copy of a stream does not say what becomes of those",
                from.1, to.1
            );
            return Err(self.wrong(&copy.to.buffer, words));
        }
        Ok(Work::Copy {
            line: line(self.text, copy.from.buffer.span()),
            from,
            to,
            size,
        })
    }

    pub(super) fn step(&mut self, step: &Step, places: &[Place]) -> Result<Task, Failure> {
        let rank = self.rank(&step.rank)?;
        if let (Some(times), true) = (&step.times, step.record.is_some() || step.wait.is_some()) {
            return Err(self.wrong(times, "`times` goes with what a stream executes"));
        }
        let given = [
            step.launch.is_some(),
            step.replay.is_some(),
            step.fill.is_some(),
            step.copy.is_some(),
            step.record.is_some(),
            step.wait.is_some(),
        ];
        let one = given.iter().filter(|&&given| given).count() == 1;
        let work = if let (Some(launch), true) = (&step.launch, one) {
            Work::Launch(self.launch(launch)?)
        } else if let (Some(name), true) = (&step.replay, one) {
            Work::Replay(self.graph(name, rank)?)
        } else if let (Some(fill), true) = (&step.fill, one) {
            let (size, byte) = (fill.size, fill.byte);
            let to = self.permitted((&fill.to, size), rank, Deed::Writes, places)?;
            let line = line(self.text, fill.to.buffer.span());
            Work::Fill {
                line,
                to,
                size,
                byte,
            }
        } else if let (Some(copy), true) = (&step.copy, one) {
            self.copy(copy, rank, places)?
        } else if let (Some(name), true) = (&step.record, one) {
            Work::Record(self.event(name, rank, true)?)
        } else if let (Some(name), true) = (&step.wait, one) {
            Work::Wait(self.event(name, rank, false)?)
        } else {
            let words = "a step has one of `launch`, `replay`, `fill`, `copy`, `record` and `wait`";
            return Err(self.wrong(&step.rank, words));
        };
        Ok(Task {
            rank,
            stream: step.stream,
            times: step.times.as_ref().map_or(1, |times| *times.get_ref()),
            work,
        })
    }
}
