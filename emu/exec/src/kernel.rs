//! A decoded entry.

use crate::decode::{Code, decode};
use slabfence_emu_ptx::{Loc, Module};
use std::{collections::HashMap, fmt, sync::Arc};

/// An entry of a module, decoded for execution. It holds no address: globals are found through the launch.
#[derive(Debug)]
pub struct Kernel {
    name: String,
    params: Vec<ParamInfo>,
    param_bytes: u32,
    max_threads: u32,
    required_threads: Option<[u32; 3]>,
    registers: u32,
    globals: usize,
    lines: Vec<(u32, Option<SourceLine>)>,
    code: Code,
}

/// The most threads that a block can have.
const MAX_THREADS: u32 = 1024;

/// Where a parameter lies in the parameter block, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Offset of its first byte.
    pub offset: u32,
    /// Its size.
    pub size: u32,
}

/// A line of a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file as the compiler named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why an entry cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Line of the PTX text, from 1; 0 where the error has no line.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for CompileError {}

impl Kernel {
    /// Decodes the entry `name` of a module.
    pub fn compile(module: &Module, name: &str) -> Result<Self, CompileError> {
        let Some(entry) = module.entry(name) else {
            return Err(CompileError {
                line: 0,
                message: format!("the module has no kernel `{name}`"),
            });
        };
        let mut files: HashMap<u32, Arc<str>> = HashMap::new();
        let mut source = |loc: Loc| {
            let file = files
                .entry(loc.file)
                .or_insert_with(|| module.file(loc.file).unwrap_or("?").into());
            SourceLine {
                file: Arc::clone(file),
                line: loc.line,
            }
        };
        let lines = entry
            .body
            .iter()
            .map(|inst| (inst.line, inst.loc.map(&mut source)))
            .collect();
        let code = decode(entry)?;
        let volume = |[x, y, z]: [u32; 3]| x.saturating_mul(y).saturating_mul(z);
        let limit = entry
            .required_threads
            .or(entry.max_threads)
            .map_or(MAX_THREADS, volume);
        Ok(Self {
            name: entry.name.clone(),
            params: entry
                .params
                .iter()
                .map(|param| ParamInfo {
                    offset: param.offset,
                    size: param.size,
                })
                .collect(),
            param_bytes: entry.param_bytes,
            max_threads: limit.min(MAX_THREADS),
            required_threads: entry.required_threads,
            registers: register_estimate(code.most_live, entry.max_registers),
            globals: module.globals.len(),
            lines,
            code,
        })
    }

    /// Its decoded body.
    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    /// Its mangled name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters in order.
    pub fn params(&self) -> &[ParamInfo] {
        &self.params
    }

    /// Size of the parameter block.
    pub fn param_bytes(&self) -> u32 {
        self.param_bytes
    }

    /// Shared memory that a block needs besides the dynamic one.
    pub fn static_shared_bytes(&self) -> u32 {
        self.code.static_shared
    }

    /// Local memory of a thread.
    pub fn local_bytes(&self) -> u32 {
        self.code.local
    }

    /// The largest block it can be launched with: `.maxntid` or `.reqntid`, else 1024.
    pub fn max_threads_per_block(&self) -> u32 {
        self.max_threads
    }

    /// `.reqntid`: the only block it can be launched with.
    pub fn required_threads(&self) -> Option<[u32; 3]> {
        self.required_threads
    }

    /// An estimate of the 32-bit registers that `ptxas` would give a thread (from the most values live at once), for
    /// a model of occupancy.
    pub fn registers(&self) -> u32 {
        self.registers
    }

    /// How many globals its module has: what `Launch::globals` must hold addresses of.
    pub fn globals(&self) -> usize {
        self.globals
    }

    /// Those of the module's globals whose addresses its instructions take, as indices.
    pub fn used_globals(&self) -> impl Iterator<Item = usize> {
        self.code.image.globals.iter().map(|slot| slot.global)
    }

    /// Line of the PTX text of an instruction.
    pub fn ptx_line(&self, pc: u32) -> u32 {
        self.lines.get(pc as usize).map_or(0, |line| line.0)
    }

    /// Line of the kernel's source of an instruction, where the PTX tells it.
    pub fn source_line(&self, pc: u32) -> Option<&SourceLine> {
        self.lines.get(pc as usize)?.1.as_ref()
    }
}

/// Registers are given in eights; a few always go to addresses and the calling convention.
fn register_estimate(most_live: u32, limit: Option<u32>) -> u32 {
    let estimate = (most_live + 6).next_multiple_of(8).clamp(16, 255);
    limit.map_or(estimate, |limit| estimate.min(limit))
}
