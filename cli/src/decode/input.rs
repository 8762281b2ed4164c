//! Attention data from safetensors files.

use std::path::PathBuf;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::element::Element;
use super::workload::{Cache, Layer, Workload};
use crate::failure::Failure;
use crate::files;

/// Largest file: every rank reads all of them.
const MOST_BYTES: u64 = 4 << 30;

/// Layers of all-MiniLM-L6-v2 that are part of the binary; see `testdata/minilm-attention/README.md`.
const BUILT_IN: [(&str, &[u8]); 2] = [
    (
        "built-in layer0.safetensors",
        include_bytes!("../../../testdata/minilm-attention/layer0.safetensors"),
    ),
    (
        "built-in layer5.safetensors",
        include_bytes!("../../../testdata/minilm-attention/layer5.safetensors"),
    ),
];

/// The built-in data.
pub fn built_in() -> Result<Workload, Failure> {
    let files = BUILT_IN
        .iter()
        .map(|(name, bytes)| parse(name, bytes))
        .collect::<Result<_, _>>()?;
    join(files)
}

/// The data of one or more files of equal shape.
pub fn from_files(paths: &[PathBuf]) -> Result<Workload, Failure> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let bytes = files::read(path, MOST_BYTES)
            .map_err(|words| Failure::Use(format!("{name}: {words}")))?;
        parse(&name, &bytes)
    };
    join(paths.iter().map(read).collect::<Result<_, _>>()?)
}

/// What one file holds. All but `layer` and `what` must be equal in the files of a run.
#[derive(Debug)]
struct File {
    what: String,
    shape: Shape,
    scale: f64,
    layer: Layer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    tokens: usize,
    keys: usize,
    heads: usize,
    key_dim: usize,
    value_dim: usize,
}

fn join(files: Vec<File>) -> Result<Workload, Failure> {
    let Some(first) = files.first() else {
        return Err(Failure::Use("no input file".to_owned()));
    };
    let (what, shape, scale) = (first.what.clone(), first.shape, first.scale);
    let first_name = first.layer.name.clone();
    for file in &files {
        if file.shape != shape || file.scale != scale {
            return Err(Failure::Use(format!(
                "{}: {:?}, scale {}, but {first_name} has {shape:?}, scale {scale}: all layers of a run have the same",
                file.layer.name, file.shape, file.scale
            )));
        }
    }
    Ok(Workload {
        what,
        element: Element::F32,
        heads: shape.heads,
        key_dim: shape.key_dim,
        value_dim: shape.value_dim,
        keys: shape.keys,
        tokens: shape.tokens,
        scale,
        layers: files.into_iter().map(|file| file.layer).collect(),
    })
}

fn parse(name: &str, bytes: &[u8]) -> Result<File, Failure> {
    let refuse = |what: String| Failure::Use(format!("{name}: {what}"));
    let broken = |error| {
        refuse(format!(
            "not a whole safetensors file ({error}); was it cut short, or is it a Git LFS pointer?"
        ))
    };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
    let get = |tensor: &str| -> Result<(TensorView<'_>, [usize; 3]), Failure> {
        let view = tensors.tensor(tensor).map_err(|_| {
            let mut there: Vec<_> = tensors.names();
            there.sort_unstable();
            refuse(format!(
                "there is no tensor `{tensor}` (there are {there:?}); q, k, v and context are needed"
            ))
        })?;
        if view.dtype() != Dtype::F32 {
            return Err(refuse(format!(
                "tensor `{tensor}` is {:?}; it must be F32",
                view.dtype()
            )));
        }
        let shape: [usize; 3] = view.shape().try_into().map_err(|_| {
            refuse(format!(
                "tensor `{tensor}` has shape {:?}; three dimensions are needed: [tokens, heads, dim]",
                view.shape()
            ))
        })?;
        if shape.contains(&0) {
            return Err(refuse(format!(
                "tensor `{tensor}` has shape {shape:?}: it is empty"
            )));
        }
        let numbers = Element::F32.decode(view.data());
        if let Some(index) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(refuse(format!(
                "tensor `{tensor}`, element {index}, is {}; only finite numbers can be compared",
                numbers[index]
            )));
        }
        Ok((view, shape))
    };
    let (q, [tokens, heads, key_dim]) = get("q")?;
    let (k, [keys, k_heads, k_dim]) = get("k")?;
    let (v, [v_keys, v_heads, value_dim]) = get("v")?;
    let (context, context_shape) = get("context")?;
    let agree = [
        ("k", [keys, k_heads, k_dim], [keys, heads, key_dim]),
        ("v", [v_keys, v_heads, value_dim], [keys, heads, value_dim]),
        ("context", context_shape, [tokens, heads, value_dim]),
    ];
    for (tensor, shape, wanted) in agree {
        if shape != wanted {
            return Err(refuse(format!(
                "tensor `{tensor}` has shape {shape:?}; beside q {:?} and k {:?} it must be {wanted:?}",
                q.shape(),
                k.shape()
            )));
        }
    }
    let metadata = header.metadata().as_ref();
    let text = |key: &str| metadata.and_then(|map| map.get(key));
    let scale = match text("scale") {
        None => 1.0 / (key_dim as f64).sqrt(),
        Some(words) => words
            .parse()
            .ok()
            .filter(|scale: &f64| scale.is_finite() && *scale > 0.0)
            .ok_or_else(|| {
                refuse(format!(
                    "metadata `scale` is {words:?}, not a positive number"
                ))
            })?,
    };
    let model = text("model").map_or("unnamed model", String::as_str);
    let context = Element::F32.decode(context.data());
    Ok(File {
        what: format!("attention activations of {model}"),
        shape: Shape {
            tokens,
            keys,
            heads,
            key_dim,
            value_dim,
        },
        scale,
        layer: Layer {
            name: name.to_owned(),
            queries: q.data().to_vec(),
            cache: Cache::PerHead {
                keys: k.data().to_vec(),
                values: v.data().to_vec(),
            },
            context: Some(context.into_iter().map(|x| x as f32).collect()),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    type Tensors = Vec<(&'static str, Dtype, Vec<usize>)>;

    fn file(tensors: &Tensors, scale: Option<&str>) -> Vec<u8> {
        let zeros = vec![0u8; 4096];
        let views = tensors.iter().map(|(name, dtype, shape)| {
            let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            let view = TensorView::new(*dtype, shape.clone(), &zeros[..bytes]);
            (*name, view.expect("a sound view"))
        });
        let metadata = scale.map(|s| HashMap::from([("scale".to_owned(), s.to_owned())]));
        safetensors::serialize(views, metadata).expect("a sound file")
    }

    fn tensors() -> Tensors {
        vec![
            ("q", Dtype::F32, vec![3, 2, 4]),
            ("k", Dtype::F32, vec![5, 2, 4]),
            ("v", Dtype::F32, vec![5, 2, 8]),
            ("context", Dtype::F32, vec![3, 2, 8]),
        ]
    }

    fn refused(tensors: &Tensors, scale: Option<&str>, words: &str) {
        let said = parse("file", &file(tensors, scale)).unwrap_err();
        assert!(matches!(said, Failure::Use(_)));
        let said = said.to_string();
        assert!(said.starts_with("file: ") && said.contains(words), "{said}");
    }

    #[test]
    fn the_built_in_layers_have_the_published_shape() {
        let data = built_in().unwrap();
        assert_eq!((data.heads, data.key_dim, data.value_dim), (12, 32, 32));
        assert_eq!((data.keys, data.tokens, data.layers.len()), (160, 160, 2));
        assert_eq!(data.scale, 0.17677669529663687);
        assert!(data.what.contains("all-MiniLM-L6-v2"), "{}", data.what);
        let bytes = 160 * 12 * 32 * 4;
        assert_eq!(data.layer(3).queries.len(), bytes);
        assert_eq!(data.layer(3).name, data.layers[1].name);
        assert_ne!(data.layers[0].queries, data.layers[1].queries);
    }

    #[test]
    fn shapes_are_read_and_the_scale_defaults_to_the_root_of_the_dimension() {
        let parsed = parse("file", &file(&tensors(), None)).unwrap();
        let shape = Shape {
            tokens: 3,
            keys: 5,
            heads: 2,
            key_dim: 4,
            value_dim: 8,
        };
        assert_eq!((parsed.shape, parsed.scale), (shape, 0.5));
        assert_eq!(parsed.layer.context.unwrap().len(), 48);
        let parsed = parse("file", &file(&tensors(), Some("0.25"))).unwrap();
        assert_eq!(parsed.scale, 0.25);
    }

    #[test]
    fn a_file_that_is_cut_short_or_garbage_is_refused() {
        let whole = file(&tensors(), None);
        for length in [0, 4, 8, 100, whole.len() - 1] {
            let said = parse("file", &whole[..length]).unwrap_err().to_string();
            assert!(
                said.starts_with("file: not a whole safetensors file"),
                "{said}"
            );
        }
        for garbage in [
            &[0xff; 64][..],
            b"version https://git-lfs.github.com/spec/v1",
        ] {
            let said = parse("file", garbage).unwrap_err().to_string();
            assert!(
                said.starts_with("file: not a whole safetensors file"),
                "{said}"
            );
        }
    }

    #[test]
    fn missing_tensors_wrong_types_and_wrong_shapes_are_named() {
        let with = |index: usize, tensor| {
            let mut changed = tensors();
            changed[index] = tensor;
            changed
        };
        refused(
            &tensors()[..3].to_vec(),
            None,
            "no tensor `context` (there are [\"k\", \"q\", \"v\"])",
        );
        refused(
            &with(1, ("k", Dtype::BF16, vec![5, 2, 4])),
            None,
            "tensor `k` is BF16; it must be F32",
        );
        refused(
            &with(0, ("q", Dtype::F32, vec![6, 4])),
            None,
            "tensor `q` has shape [6, 4]; three dimensions",
        );
        refused(
            &with(0, ("q", Dtype::F32, vec![0, 2, 4])),
            None,
            "tensor `q` has shape [0, 2, 4]: it is empty",
        );
        refused(
            &with(1, ("k", Dtype::F32, vec![5, 1, 4])),
            None,
            "`k` has shape [5, 1, 4]; beside q [3, 2, 4]",
        );
        refused(
            &with(2, ("v", Dtype::F32, vec![4, 2, 8])),
            None,
            "it must be [5, 2, 8]",
        );
        refused(
            &with(3, ("context", Dtype::F32, vec![3, 2, 4])),
            None,
            "it must be [3, 2, 8]",
        );
        let no_number = f32::NAN.to_le_bytes();
        let mut bytes = file(&tensors(), None);
        let last = bytes.len() - 4;
        bytes[last..].copy_from_slice(&no_number);
        let said = parse("file", &bytes).unwrap_err().to_string();
        assert!(said.contains("is NaN; only finite numbers"), "{said}");
        for scale in ["fast", "-1", "inf", "0"] {
            refused(&tensors(), Some(scale), "not a positive number");
        }
    }

    #[test]
    fn files_of_different_shapes_do_not_make_one_run() {
        let one = parse("one", &file(&tensors(), None)).unwrap();
        let mut wider = tensors();
        wider[1].2[0] = 6;
        wider[2].2[0] = 6;
        let other = parse("other", &file(&wider, None)).unwrap();
        let said = join(vec![one, other]).unwrap_err().to_string();
        assert!(
            said.starts_with("other: ") && said.contains("but one has"),
            "{said}"
        );
    }
}
