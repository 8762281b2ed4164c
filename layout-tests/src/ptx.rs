//! Reader of PTX text: initialised byte arrays, and the parameters of kernels.

/// A kernel's name and its parameters, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// What each parameter takes.
    pub parameters: Vec<Block>,
}

/// Size and alignment of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Bytes.
    pub size: usize,
    /// Alignment, bytes.
    pub align: usize,
}

/// The 32-bit words of the array `name`, which nvcc writes as bytes and without the zeros at its end.
pub fn words(ptx: &str, name: &str) -> Option<Vec<u32>> {
    let opening = format!(" {name}[");
    let line = ptx
        .lines()
        .find(|line| line.starts_with(".global ") && line.contains(&opening))?;
    let (declaration, values) = line.split_once(" = {")?;
    let (kind, length) = declaration.split_once(&opening)?;
    if !kind.ends_with(".b8") {
        return None;
    }
    let length: usize = length.trim_end().strip_suffix(']')?.parse().ok()?;
    let values = values.trim_end().strip_suffix("};")?;
    let mut bytes = values
        .split(", ")
        .map(|byte| byte.parse().ok())
        .collect::<Option<Vec<u8>>>()?;
    if bytes.len() > length || !length.is_multiple_of(4) {
        return None;
    }
    bytes.resize(length, 0);
    let words = bytes.chunks_exact(4);
    Some(
        words
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
            .collect(),
    )
}

/// Every kernel. `None` when a declaration has another form than nvcc's.
pub fn entries(ptx: &str) -> Option<Vec<Entry>> {
    let mut rest = ptx;
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once(".entry ") {
        let (name, after) = after.split_once('(')?;
        let (list, after) = after.split_once(')')?;
        let declarations = list
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty());
        found.push(Entry {
            name: name.trim().to_owned(),
            parameters: declarations.map(parameter).collect::<Option<_>>()?,
        });
        rest = after;
    }
    Some(found)
}

/// What `.param .align 8 .b8 name[24]` or `.param .u64 name` takes.
fn parameter(declaration: &str) -> Option<Block> {
    let count = match declaration.split_once('[') {
        Some((_, count)) => count.strip_suffix(']')?.parse().ok()?,
        None => 1,
    };
    let types = [("8 ", 1), ("16 ", 2), ("32 ", 4), ("64 ", 8)];
    let kind = declaration.split('.').next_back()?;
    let bits = kind.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let &(_, bytes) = types.iter().find(|(width, _)| bits.starts_with(width))?;
    let align = match declaration.split_once(".align ") {
        Some((_, after)) => after.split(' ').next()?.parse().ok()?,
        None => bytes,
    };
    Some(Block {
        size: bytes * count,
        align,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_gets_back_the_zeros_at_its_end() {
        let ptx = "// sf_a[\n.global .align 4 .b8 sf_a[12] = {1, 2, 0, 0, 255};\n.global .align 4 .b32 sf_b[1] = {1};\n";
        assert_eq!(words(ptx, "sf_a"), Some(vec![0x201, 255, 0]));
        assert_eq!(words(ptx, "sf_b"), None, "not bytes");
        assert_eq!(words(ptx, "sf_c"), None);
        assert_eq!(words(ptx, "f_a"), None, "a part of a name is another name");
    }

    #[test]
    fn parameters_are_measured_whatever_their_form() {
        let ptx = "\
.visible .entry sf_x(
\t.param .align 8 .b8 sf_x_param_0[24],
\t.param .u64 .ptr .align 1 sf_x_param_1,
\t.param .u32 sf_x_param_2
)
.maxntid 256, 1, 1
{
}
.visible .entry sf_y()
{ ret; }
";
        let entry = |name: &str, parameters: &[(usize, usize)]| Entry {
            name: name.to_owned(),
            parameters: parameters
                .iter()
                .map(|&(size, align)| Block { size, align })
                .collect(),
        };
        let plain = ptx.replace(".ptr .align 1 ", "");
        assert_eq!(
            entries(&plain),
            Some(vec![
                entry("sf_x", &[(24, 8), (8, 8), (4, 4)]),
                entry("sf_y", &[])
            ])
        );
        assert_eq!(entries(ptx), None, "a form that no kernel of ours has");
    }
}
