//! The inputs of a run as a file, so that other libraries can be timed on the same tensors.
//!
//! For every batch size B and rank r: `gather.b{B}.rank{r}` `[B, heads / ranks, query_dim]`, `reduce.b{B}.rank{r}`
//! `[B, heads, value_dim]`, both bf16, and `lse.b{B}.rank{r}` `[B, heads]`, f32, base e.

use std::path::Path;

use safetensors::Dtype;

use super::args::Operation;
use super::data;
use super::rank::{Case, lse_of};
use crate::failure::Failure;
use crate::tensor::Tensor;

/// Writes the file.
pub fn write(path: &Path, cases: &[Case], seed: u64) -> Result<(), Failure> {
    let tensors: Vec<(String, Tensor)> =
        cases.iter().flat_map(|case| of_case(case, seed)).collect();
    let views = tensors.iter().map(|(name, tensor)| (name, tensor));
    safetensors::serialize_to_file(views, None, path)
        .map_err(|error| Failure::Fault(format!("{}: {error}", path.display())))
}

fn of_case(case: &Case, seed: u64) -> Vec<(String, Tensor)> {
    let shape = case.shape;
    let mut tensors = Vec::new();
    for rank in 0..shape.world {
        let seed = data::seed_of(seed, rank);
        let mut put = |name: &str, dtype: Dtype, extents: &[usize], bytes: Vec<u8>| {
            let name = format!("{name}.b{}.rank{rank}", shape.batch);
            let shape = extents.to_vec();
            tensors.push((
                name,
                Tensor {
                    dtype,
                    shape,
                    bytes,
                },
            ));
        };
        match case.operation {
            Operation::Gather => {
                let extents = [shape.batch, shape.own_heads(), shape.dim];
                let bytes = data::values(seed, shape.own());
                put("gather", Dtype::BF16, &extents, bytes);
            }
            Operation::Reduce => {
                let extents = [shape.batch, shape.heads, shape.dim];
                let bytes = data::values(seed, shape.all());
                put("reduce", Dtype::BF16, &extents, bytes);
                let bytes = lse_of(case, seed);
                let bytes = bytes.iter().flat_map(|x| x.to_le_bytes()).collect();
                put("lse", Dtype::F32, &extents[..2], bytes);
            }
            Operation::Floor => {}
        }
    }
    tensors
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::super::data::Shape;
    use super::*;

    #[test]
    fn the_file_holds_what_the_ranks_are_given() {
        let folder = std::env::temp_dir().join(format!("slabfence-inputs-{}", std::process::id()));
        let case = |operation| Case {
            operation,
            shape: Shape {
                world: 2,
                batch: 3,
                heads: 4,
                dim: 8,
            },
        };
        let cases = [
            case(Operation::Gather),
            case(Operation::Reduce),
            case(Operation::Floor),
        ];
        write(&folder, &cases, 7).unwrap();
        let bytes = std::fs::read(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut names = file.names();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "gather.b3.rank0",
                "gather.b3.rank1",
                "lse.b3.rank0",
                "lse.b3.rank1",
                "reduce.b3.rank0",
                "reduce.b3.rank1"
            ]
        );
        let gather = file.tensor("gather.b3.rank1").unwrap();
        assert_eq!(gather.shape(), [3, 2, 8]);
        assert_eq!(gather.data(), data::values(data::seed_of(7, 1), 3 * 2 * 8));
        assert_eq!(file.tensor("lse.b3.rank0").unwrap().shape(), [3, 4]);
    }
}
