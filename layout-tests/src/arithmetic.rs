//! The arithmetic lint: results must be bit-identical on every rank, device and in the emulator, so the images may hold
//! no instruction whose result the PTX specification leaves open.

/// A statement that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Line of the PTX text, from 1.
    pub line: usize,
    /// The instruction with its modifiers.
    pub instruction: String,
    /// Why.
    pub reason: &'static str,
}

/// Every refused statement of a PTX text.
pub fn refusals(ptx: &str) -> Vec<Refusal> {
    let mut found = Vec::new();
    for (number, line) in ptx.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for statement in code.split([';', '{', '}']) {
            let instruction = instruction(statement);
            if let Some(reason) = judge(instruction) {
                found.push(Refusal {
                    line: number + 1,
                    instruction: instruction.to_owned(),
                    reason,
                });
            }
        }
    }
    found
}

/// The first word that is neither a label nor a predicate.
fn instruction(statement: &str) -> &str {
    statement
        .split_ascii_whitespace()
        .find(|word| !word.starts_with('@') && !word.ends_with(':'))
        .unwrap_or_default()
}

fn judge(instruction: &str) -> Option<&'static str> {
    let mut parts = instruction.split('.');
    let operation = parts.next().unwrap_or_default();
    let modifiers: Vec<&str> = parts.collect();
    let has = |modifier: &str| modifiers.contains(&modifier);
    let float = modifiers.iter().any(|m| {
        ["f16", "bf16", "f32", "f64", "tf32"]
            .iter()
            .any(|float| m.starts_with(float))
    });
    if has("approx") || has("full") {
        return Some("approximate: its result is not specified");
    }
    if has("ftz") {
        return Some("flushes subnormals to zero");
    }
    if operation.contains("mma") || operation == "tcgen05" {
        return Some("matrix instruction: its order of summation is not specified");
    }
    if float && matches!(operation, "atom" | "red") && has("add") {
        return Some("atomic float addition: the order of arrival decides the result");
    }
    if float
        && matches!(
            operation,
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rcp" | "sqrt"
        )
        && !has("rn")
    {
        return Some("no .rn: the assembler may contract it into a fused multiply-add");
    }
    let otherwise = ["rz", "rm", "rp", "rna", "rs", "rzi", "rmi", "rpi"];
    if float && operation == "cvt" && otherwise.iter().any(|mode| has(mode)) {
        return Some("rounds otherwise than to nearest even");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(instruction: &str) -> bool {
        !refusals(&format!("\t{instruction} \t%f1, %f2, %f3;\n")).is_empty()
    }

    #[test]
    fn unspecified_results_are_refused() {
        for instruction in [
            "ex2.approx.f32",
            "ex2.approx.ftz.bf16x2",
            "rsqrt.approx.f32",
            "div.full.f32",
            "div.approx.f32",
            "add.f32",
            "sub.f32",
            "mul.f32",
            "add.f32x2",
            "mul.bf16x2",
            "add.f16",
            "sub.f64",
            "add.rz.f32",
            "fma.rn.ftz.f32",
            "mul.rn.ftz.f32",
            "setp.lt.ftz.f32",
            "cvt.rn.ftz.f32.f16",
            "cvt.rz.bf16x2.f32",
            "cvt.rna.tf32.f32",
            "cvt.rzi.s32.f32",
            "sqrt.rm.f32",
            "red.relaxed.gpu.global.add.f32",
            "atom.global.add.noftz.bf16x2",
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
            "tcgen05.mma.cta_group::1.kind::f16",
        ] {
            assert!(refused(instruction), "{instruction}");
        }
    }

    #[test]
    fn rounded_and_integer_arithmetic_passes() {
        for instruction in [
            "add.rn.f32",
            "sub.rn.f32",
            "mul.rn.f32",
            "fma.rn.f32",
            "rcp.rn.f32",
            "sqrt.rn.f32",
            "div.rn.f32",
            "add.s64",
            "mul.wide.u32",
            "mul.lo.s32",
            "mad.lo.s32",
            "sub.u32",
            "max.f32",
            "setp.gt.f32",
            "cvt.rn.bf16x2.f32",
            "cvt.rni.s32.f32",
            "cvt.f32.f16",
            "cvt.rn.f32.u32",
            "atom.acq_rel.gpu.global.add.u64",
            "ld.global.f32",
            "shl.b32",
        ] {
            assert!(!refused(instruction), "{instruction}");
        }
    }

    #[test]
    fn predicates_labels_and_inline_blocks_hide_nothing() {
        let ptx = "// add.f32\n@%p1 bra $L;\n$L: @!%p2 add.f32 %f1, %f1, %f1;\n{ mov.b32 a, b; mul.f32 a, a, a; }\n";
        let found: Vec<_> = refusals(ptx)
            .into_iter()
            .map(|r| (r.line, r.instruction))
            .collect();
        assert_eq!(
            found,
            [(3, "add.f32".to_owned()), (4, "mul.f32".to_owned())]
        );
    }
}
