//! A litmus test as kernels of PTX: one for each device and each stretch between two `kernel` lines.
//!
//! A column is lane 0 of a warp of its own. Its registers lie in memory between two kernels, and at the end, where the test
//! reads them.

mod instruction;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use slabfence_emu_model::Place;
use slabfence_emu_model::litmus::{Instruction, Litmus, Operand};

use instruction::{name, updated};

/// Bytes from one location to the next.
pub const LOCATION: u64 = 64;
/// Most registers of a column.
const REGISTERS: u64 = 32;

/// Why a litmus test cannot be run as kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// A column is a thread of the host.
    Host,
    /// Edges of the API lie within a column.
    Edges,
    /// The number or the count of a barrier is in a register.
    Barrier,
    /// PTX has no such read-modify-write.
    Update,
}

/// The kernels of one device.
#[derive(Debug)]
pub struct Kernels {
    /// The text of its module. Kernel `k` is the entry `k<k>`.
    pub text: String,
    /// Blocks of each.
    pub grid: u32,
    /// Threads of a block.
    pub threads: u32,
    /// How many follow one another.
    pub count: usize,
}

/// Where a location lies, from the start of the memory that kernels get.
pub fn location(number: usize) -> u64 {
    number as u64 * LOCATION
}

/// Where a register of a column lies.
pub fn register(litmus: &Litmus, column: usize, register: usize) -> u64 {
    location(litmus.locations.len()) + (column as u64 * REGISTERS + register as u64) * 8
}

/// Bytes of memory that kernels get.
pub fn bytes(litmus: &Litmus) -> u64 {
    register(litmus, litmus.threads.len(), 0)
}

/// The kernels of a test, by device.
pub fn kernels(litmus: &Litmus) -> Result<Vec<Kernels>, Unfit> {
    let mut columns: BTreeMap<u32, BTreeMap<u32, Vec<usize>>> = BTreeMap::new();
    for (at, thread) in litmus.threads.iter().enumerate() {
        let Place::Device { gpu, cta } = thread.place else {
            return Err(Unfit::Host);
        };
        if let Some(unfit) = thread.code.iter().find_map(|(code, _)| unfit(code)) {
            return Err(unfit);
        }
        assert!(thread.registers.len() as u64 <= REGISTERS);
        let blocks = columns.entry(gpu).or_default();
        blocks.entry(cta).or_default().push(at);
    }
    // Devices and blocks are numbered in order, whatever the test calls them.
    Ok(columns
        .into_values()
        .map(|blocks| device(litmus, blocks))
        .collect())
}

/// Why PTX, or a kernel, has no such instruction.
fn unfit(code: &Instruction) -> Option<Unfit> {
    let is_register = |operand: &Operand| matches!(operand, Operand::Register(_));
    match code {
        Instruction::Signal { .. } | Instruction::Wait { .. } => Some(Unfit::Edges),
        Instruction::Barrier { id, count, .. } => {
            let computed = is_register(id) || count.as_ref().is_some_and(is_register);
            computed.then_some(Unfit::Barrier)
        }
        Instruction::Update {
            order, to, what, ..
        } => {
            // `red` is relaxed or a release.
            let lacking = updated(*what).is_none() || to.is_none() && order.acquires();
            lacking.then_some(Unfit::Update)
        }
        _ => None,
    }
}

fn device(litmus: &Litmus, blocks: BTreeMap<u32, Vec<usize>>) -> Kernels {
    let all = || blocks.values().flatten().copied();
    let ends = |column: usize| {
        let code = litmus.threads[column].code.iter().enumerate();
        let ends = code.filter(|(_, (code, _))| *code == Instruction::Kernel);
        ends.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    let kernels = all().map(|column| ends(column).len()).max().unwrap_or(0) + 1;
    let mut text = ".version 9.0\n.target sm_90\n.address_size 64\n".to_owned();
    for kernel in 0..kernels {
        let mut body = Body::new(litmus);
        for (block, columns) in blocks.values().enumerate() {
            let with_counts = counted(litmus, columns);
            for (warp, &column) in columns.iter().enumerate() {
                let ends = ends(column);
                assert_eq!(ends.len() + 1, kernels, "{}", litmus.name);
                let from = kernel.checked_sub(1).map_or(0, |last| ends[last] + 1);
                let to = ends.get(kernel).copied();
                let to = to.unwrap_or(litmus.threads[column].code.len());
                body.column(column, (block, warp), from..to, &with_counts);
            }
        }
        text += &body.entry(kernel);
    }
    // A barrier may wait for more threads than there are columns, if there could be as many.
    let expected = all().flat_map(|column| &litmus.threads[column].code);
    let expected = expected.filter_map(|(code, _)| match code {
        Instruction::Barrier {
            count: Some(Operand::Number(count)),
            ..
        } => Some(*count as usize),
        _ => None,
    });
    let warps = blocks.values().map(Vec::len).chain(expected).max();
    Kernels {
        text,
        grid: blocks.len() as u32,
        threads: 32 * warps.unwrap_or(1) as u32,
        count: kernels,
    }
}

/// How many columns of a block come to a barrier, by its number, where PTX wants that said: where not all of them do, or
/// one arrives and goes on.
fn counted(litmus: &Litmus, columns: &[usize]) -> BTreeMap<i64, usize> {
    let mut users: BTreeMap<i64, (BTreeSet<usize>, bool)> = BTreeMap::new();
    for &column in columns {
        for (code, _) in &litmus.threads[column].code {
            if let Instruction::Barrier { waits, id, .. } = code
                && let Operand::Number(id) = id
            {
                let (of, arrives) = users.entry(*id).or_default();
                of.insert(column);
                *arrives |= !waits;
            }
        }
    }
    let counts = users
        .into_iter()
        .filter(|(_, (of, arrives))| *arrives || of.len() < columns.len());
    counts.map(|(id, (of, _))| (id, of.len())).collect()
}

/// The body of an entry.
struct Body<'a> {
    litmus: &'a Litmus,
    dispatch: String,
    text: String,
}

impl<'a> Body<'a> {
    fn new(litmus: &'a Litmus) -> Self {
        Self {
            litmus,
            dispatch: String::new(),
            text: String::new(),
        }
    }

    fn entry(&self, number: usize) -> String {
        let registers = self.litmus.threads.len() as u64 * REGISTERS;
        let (dispatch, text) = (&self.dispatch, &self.text);
        format!(
            "
.visible .entry k{number}(.param .align 8 .b8 block[16])
{{
    .reg .b64 %base, %r<{registers}>;
    .reg .b32 %lane, %warp, %cta;
    .reg .pred %p, %q;
    ld.param.u64 %base, [block];
    mov.u32 %warp, %tid.x;
    and.b32 %lane, %warp, 31;
    shr.u32 %warp, %warp, 5;
    mov.u32 %cta, %ctaid.x;
    setp.ne.u32 %p, %lane, 0;
    @%p ret;
{dispatch}    ret;
{text}}}
"
        )
    }

    fn line(&mut self, line: &str) {
        self.text += "    ";
        self.text += line;
        self.text += ";\n";
    }

    /// A stretch of a column.
    fn column(
        &mut self,
        column: usize,
        (block, warp): (usize, usize),
        stretch: std::ops::Range<usize>,
        counted: &BTreeMap<i64, usize>,
    ) {
        let thread = &self.litmus.threads[column];
        let _ = write!(
            self.dispatch,
            "    setp.eq.u32 %p, %cta, {block};
    setp.eq.and.u32 %q, %warp, {warp}, %p;
    @%q bra C{column};
"
        );
        self.text += &format!("C{column}:\n");
        for (number, initial) in thread.initial.iter().enumerate() {
            let to = name(column, number);
            match stretch.start {
                0 => self.line(&format!("mov.b64 {to}, {initial}")),
                _ => {
                    let at = register(self.litmus, column, number);
                    self.line(&format!("ld.global.b64 {to}, [%base+{at}]"));
                }
            }
        }
        let targets: BTreeSet<usize> = thread.code[stretch.clone()]
            .iter()
            .filter_map(|(code, _)| match code {
                Instruction::Branch { target, .. } | Instruction::Jump { target } => Some(*target),
                _ => None,
            })
            .collect();
        for at in stretch.clone() {
            if targets.contains(&at) {
                self.text += &format!("C{column}_{at}:\n");
            }
            self.instruction(column, &thread.code[at].0, counted);
        }
        if targets.contains(&stretch.end) {
            self.text += &format!("C{column}_{}:\n", stretch.end);
        }
        for number in 0..thread.registers.len() {
            let at = register(self.litmus, column, number);
            let from = name(column, number);
            self.line(&format!("st.global.b64 [%base+{at}], {from}"));
        }
        self.line("ret");
    }
}
