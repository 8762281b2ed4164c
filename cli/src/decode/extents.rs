//! Where the arrays of a step lie.

use super::setup::Setup;

/// Byte counts of one batch size's arrays. Everything of a step that a check looks at is one block, so that one copy
/// fetches it: the gathered queries of every layer, those of the extra gather, the outputs of every layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Layers of the graph.
    pub layers: usize,
    /// One layer's queries of one rank.
    pub queries: usize,
    /// One layer's queries of all ranks.
    pub gathered: usize,
    /// One layer's outputs of one rank.
    pub output: usize,
}

impl Extents {
    /// For `batch` tokens.
    pub fn new(setup: &Setup<'_>, batch: usize) -> Self {
        let data = setup.data;
        let own = batch * setup.own_heads();
        Self {
            layers: setup.layers,
            queries: own * data.query_row(),
            gathered: batch * data.heads * data.query_row(),
            output: own * data.value_row(),
        }
    }

    /// All layers' queries of one rank.
    pub fn inputs(&self) -> usize {
        self.layers * self.queries
    }

    /// Where gather `index` puts its result; the one after the layers' is the extra gather.
    pub fn gathered_at(&self, index: usize) -> usize {
        index * self.gathered
    }

    /// Where layer `layer` puts its output.
    pub fn output_at(&self, layer: usize) -> usize {
        (self.layers + 1) * self.gathered + layer * self.output
    }

    /// The whole block.
    pub fn results(&self) -> usize {
        self.output_at(self.layers)
    }

    /// Where a replay's block first differs from the eager pass's, in words.
    pub fn first_difference(&self, replay: usize, eager: &[u8], block: &[u8]) -> Option<String> {
        if eager == block {
            return None;
        }
        let differs = |(a, b)| a != b;
        let place = eager.iter().zip(block).position(differs).unwrap_or(0);
        let outputs = self.output_at(0);
        let what = match place.checked_sub(outputs) {
            None => format!(
                "byte {} of gather {}",
                place % self.gathered,
                place / self.gathered
            ),
            Some(place) => format!(
                "byte {} of the output of layer {}",
                place % self.output,
                place / self.output
            ),
        };
        Some(format!(
            "replay {replay} differs from the eager pass at {what}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENTS: Extents = Extents {
        layers: 2,
        queries: 4,
        gathered: 8,
        output: 6,
    };

    #[test]
    fn results_are_the_gathers_then_the_outputs() {
        assert_eq!((EXTENTS.inputs(), EXTENTS.results()), (8, 3 * 8 + 2 * 6));
        assert_eq!((EXTENTS.gathered_at(2), EXTENTS.output_at(1)), (16, 30));
    }

    #[test]
    fn the_first_difference_is_told_by_operation_and_byte() {
        let eager = [0u8; 36];
        let at = |place: usize| {
            let mut block = eager;
            block[place..].fill(1);
            EXTENTS.first_difference(7, &eager, &block)
        };
        assert_eq!(EXTENTS.first_difference(7, &eager, &eager), None);
        let words = |what: &str| Some(format!("replay 7 differs from the eager pass at {what}"));
        assert_eq!(at(0), words("byte 0 of gather 0"));
        assert_eq!(at(23), words("byte 7 of gather 2"));
        assert_eq!(at(24), words("byte 0 of the output of layer 0"));
        assert_eq!(at(35), words("byte 5 of the output of layer 1"));
    }
}
