//! Reads launches: geometry, shared memory and arguments must fit the kernel.

use toml::Spanned;

use super::file::{Argument, Launch};
use super::plan::{Grid, Parameter};
use super::read::{Reader, line};
use crate::failure::Failure;

/// Most bytes of a parameter.
const MOST_PARAMETER: usize = 4096;
/// Most shared memory of a block, bytes: what it can have without opting in to more.
const MOST_SHARED: u64 = 48 << 10;

impl Reader<'_> {
    pub(super) fn launch(&self, launch: &Launch) -> Result<Grid, Failure> {
        let name = launch.kernel.get_ref();
        let mut entries = self.ptx.entries.iter();
        let Some(entry) = entries.find(|entry| entry.name == *name) else {
            return Err(self.wrong(&launch.kernel, format!("the PTX has no kernel `{name}`")));
        };
        let threads = launch.block.get_ref().three();
        let count = threads.iter().map(|&t| u64::from(t)).product::<u64>();
        if !(1..=1024).contains(&count) {
            return Err(self.wrong(&launch.block, "a block has 1 to 1024 threads"));
        }
        let blocks = launch.grid.get_ref().three();
        let count = blocks.iter().map(|&b| u64::from(b)).product::<u64>();
        if !(1..=65_536).contains(&count) {
            return Err(self.wrong(&launch.grid, "a grid has 1 to 65536 blocks here"));
        }
        let shared = launch.shared.as_ref().map_or(0, |shared| *shared.get_ref());
        let own: u64 = entry.shared.iter().map(|variable| variable.size).sum();
        if u64::from(shared) + own > MOST_SHARED {
            let words = format!(
                "{shared} bytes of shared memory, and {own} that kernel `{name}` has itself; a block has at most {MOST_SHARED} here"
            );
            return Err(match &launch.shared {
                Some(given) => self.wrong(given, words),
                None => self.wrong(&launch.kernel, words),
            });
        }
        let (given, wanted) = (launch.arguments.get_ref(), &entry.params);
        if given.len() != wanted.len() {
            let words = format!(
                "{} arguments for the {} parameters of kernel `{name}`",
                given.len(),
                wanted.len()
            );
            return Err(self.wrong(&launch.arguments, words));
        }
        let mut parameters = Vec::new();
        for (argument, wanted) in given.iter().zip(wanted) {
            let mut parameter = Parameter::default();
            self.argument(argument, &mut parameter)?;
            if parameter.bytes.len() != wanted.size as usize {
                let words = format!(
                    "{} bytes for parameter `{}` of kernel `{name}`, which has {}",
                    parameter.bytes.len(),
                    wanted.name,
                    wanted.size
                );
                return Err(self.wrong(argument, words));
            }
            parameters.push(parameter);
        }
        Ok(Grid {
            line: line(self.text, launch.kernel.span()),
            kernel: name.clone(),
            grid: blocks,
            block: threads,
            shared,
            parameters,
        })
    }

    /// Appends a value.
    fn argument(&self, value: &Spanned<Argument>, to: &mut Parameter) -> Result<(), Failure> {
        if to.bytes.len() > MOST_PARAMETER {
            let words = format!("parameters have at most {MOST_PARAMETER} bytes");
            return Err(self.wrong(value, words));
        }
        let address = |to: &mut Parameter, buffer, offset| {
            put(&mut to.bytes, &[0; 8]);
            to.addresses.push((to.bytes.len() - 8, buffer, offset));
        };
        match value.get_ref() {
            Argument::Buffer(name) => address(to, self.buffer(name)?, 0),
            Argument::At(inside) => {
                let (buffer, offset) = self.inside(inside, 0)?;
                address(to, buffer, offset);
            }
            Argument::U8(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::S8(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::U16(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::S16(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::U32(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::S32(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::U64(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::S64(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::F32(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::F64(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::Block(fields) => {
                for field in fields {
                    if let Argument::Block(_) = field.get_ref() {
                        return Err(self.wrong(field, "a block has no blocks in it"));
                    }
                    self.argument(field, to)?;
                }
            }
        }
        Ok(())
    }
}

/// Appends a field at a multiple of its size.
fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.resize(bytes.len().next_multiple_of(field.len()), 0);
    bytes.extend_from_slice(field);
}
