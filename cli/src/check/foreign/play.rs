//! A scenario on a held machine.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::ptr;

use slabfence::driver::{CaptureMode, Device, Event, Graph, GraphExec, Stream};
use slabfence::sys::{CUdeviceptr, CUfunction, CUmodule};
use slabfence_emu::held::{self, Patience, Run};

use super::memory::{Memory, check, missing};
use super::plan::{Capture, Grid, Plan, Task, Work};
use super::told::Steps;
use crate::check::case;
use crate::check::settings::Settings;
use crate::failure::Failure;

/// What came of it.
#[derive(Debug)]
pub struct Played {
    /// Runs that were made.
    pub runs: u64,
    /// Readers of words that the detector had no room to remember.
    pub forgotten: u64,
    /// Warps beyond those that it tells apart.
    pub crowded: u64,
    /// The first run with something to tell.
    pub bad: Option<Run>,
}

/// All ranks. What they hold goes with their machine.
struct Stage<'a> {
    plan: &'a Plan,
    devices: Vec<Device>,
    modules: Vec<(u32, CUmodule)>,
    functions: BTreeMap<(u32, &'a str), CUfunction>,
    memory: Vec<Memory>,
    streams: BTreeMap<(u32, u32), Stream>,
    graphs: Vec<(Graph, GraphExec)>,
    events: Vec<Event>,
}

/// Runs a plan by all seeds.
pub fn run(plan: &Plan, settings: &Settings) -> Result<Played, Failure> {
    let (machine, driver) = case::machine(plan.ranks, &plan.profile)?;
    let devices = (0..plan.ranks).map(|rank| Device::open(&driver, rank));
    let devices = devices.collect::<Result<Vec<_>, _>>()?;
    let memory = plan
        .buffers
        .iter()
        .map(|place| Memory::new(&devices, place));
    let mut stage = Stage {
        plan,
        memory: memory.collect::<Result<_, _>>()?,
        modules: Vec::new(),
        functions: BTreeMap::new(),
        streams: BTreeMap::new(),
        graphs: Vec::new(),
        events: Vec::new(),
        devices,
    };
    for (memory, place) in stage.memory.iter().zip(&plan.buffers) {
        if place.written {
            let mut initial = place.initial.clone();
            stage.addresses(&place.addresses, &mut initial);
            memory.write(&stage.devices[place.owner as usize], &initial)?;
        }
        for span in &place.spans {
            let description = span.description.clone();
            machine.describe(memory.address + span.offset, span.len, description);
        }
    }
    stage.load()?;
    for capture in &plan.graphs {
        let graph = stage.capture(capture)?;
        stage.graphs.push(graph);
    }
    for &rank in &plan.events {
        stage
            .events
            .push(Event::new(&stage.devices[rank as usize])?);
    }
    for task in &plan.steps {
        stage.stream(task.rank, task.stream)?;
    }
    let held_error = |error: slabfence_emu::held::HeldError| Failure::Fault(error.to_string());
    let mut held = machine.hold().map_err(held_error)?;
    let mut steps = Steps::default();
    for task in &plan.steps {
        let before = held.enqueued(task.rank);
        stage.enqueue(task)?;
        steps.add(task, before, held.enqueued(task.rank));
    }
    let look = |looked: &slabfence_emu::held::Looked<'_>| {
        plan.expected.iter().try_for_each(|(buffer, wanted)| {
            let mut got = vec![0; wanted.len()];
            let read = looked.read(stage.memory[*buffer].address, &mut got);
            let differ = |at: &usize| !read || got[*at] != wanted[*at];
            match (0..wanted.len()).find(differ) {
                None => Ok(()),
                Some(at) => Err(format!(
                    "byte {at} of buffer `{}` is {:#04x}, not {:#04x}",
                    plan.buffers[*buffer].name, got[at], wanted[at]
                )),
            }
        })
    };
    // Each rank has a device of its own.
    let how = held::Plan {
        ranks_are_devices: true,
        patience: match plan.time_passes {
            true => Patience::Time,
            false => Patience::None,
        },
        ..settings.plan()
    };
    let explored = held.explore(&how, settings.seeds.iter().copied(), look);
    let explored = explored.map_err(held_error)?;
    let mut bad = explored.bad;
    if let Some(run) = &mut bad {
        steps.name(run);
    }
    Ok(Played {
        runs: explored.runs,
        forgotten: explored.forgotten,
        crowded: explored.crowded,
        bad,
    })
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.graphs.clear();
        for &(rank, module) in &self.modules {
            let device = &self.devices[rank as usize];
            // On a device that is lost nothing can be given back; it goes with its machine.
            if let Ok(_guard) = device.bind() {
                // SAFETY: the module was loaded in this context, and its graphs are gone.
                let _ = unsafe { (device.driver().api().cuModuleUnload)(module) };
            }
        }
    }
}

impl<'a> Stage<'a> {
    /// Loads the text on every device.
    fn load(&mut self) -> Result<(), Failure> {
        let nul = |_| Failure::Use("the PTX text or a name has a NUL inside".to_owned());
        let text = CString::new(self.plan.text.as_str()).map_err(nul)?;
        let in_graphs = self.plan.graphs.iter().flat_map(|graph| &graph.launches);
        let in_steps = self.plan.steps.iter().filter_map(|task| match &task.work {
            Work::Launch(grid) => Some(grid),
            _ => None,
        });
        let names: Vec<&'a str> = in_graphs
            .chain(in_steps)
            .map(|grid| grid.kernel.as_str())
            .collect();
        for (rank, device) in (0..).zip(&self.devices) {
            let _guard = device.bind()?;
            let api = device.driver().api();
            let mut module = CUmodule::null();
            // SAFETY: a live out-parameter, terminated text, no options.
            let code = unsafe {
                (api.cuModuleLoadDataEx)(
                    &mut module,
                    text.as_ptr().cast(),
                    0,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            check("cuModuleLoadDataEx", code)?;
            self.modules.push((rank, module));
            for &name in &names {
                let symbol = CString::new(name).map_err(nul)?;
                let mut function = CUfunction::null();
                // SAFETY: the module is loaded; a live out-parameter; the name is terminated.
                let code =
                    unsafe { (api.cuModuleGetFunction)(&mut function, module, symbol.as_ptr()) };
                check("cuModuleGetFunction", code)?;
                self.functions.insert((rank, name), function);
            }
        }
        Ok(())
    }

    fn stream(&mut self, rank: u32, number: u32) -> Result<(), Failure> {
        if !self.streams.contains_key(&(rank, number)) {
            let stream = Stream::new(&self.devices[rank as usize])?;
            self.streams.insert((rank, number), stream);
        }
        Ok(())
    }

    fn capture(&self, capture: &Capture) -> Result<(Graph, GraphExec), Failure> {
        let stream = Stream::new(&self.devices[capture.rank as usize])?;
        stream.begin_capture(CaptureMode::ThreadLocal)?;
        for grid in &capture.launches {
            self.launch(capture.rank, grid, &stream)?;
        }
        let graph = stream.end_capture()?;
        let exec = graph.instantiate()?;
        Ok((graph, exec))
    }

    fn enqueue(&mut self, task: &Task) -> Result<(), Failure> {
        for _ in 0..task.times {
            let stream = &self.streams[&(task.rank, task.stream)];
            match &task.work {
                Work::Launch(grid) => self.launch(task.rank, grid, stream)?,
                Work::Replay(graph) => self.graphs[*graph].1.launch(stream)?,
                Work::Fill { to, size, byte, .. } => {
                    let (to, size) = (self.at(*to), *size as usize);
                    let device = &self.devices[task.rank as usize];
                    let _guard = device.bind()?;
                    let fill = device.driver().api().cuMemsetD8Async().map_err(missing)?;
                    // SAFETY: the bytes lie in a buffer of the scenario, which lives as long as its machine.
                    let code = unsafe { fill(to, *byte, size, stream.raw()) };
                    check("cuMemsetD8Async", code)?;
                }
                Work::Copy { from, to, size, .. } => {
                    let (from, to, size) = (self.at(*from), self.at(*to), *size as usize);
                    let device = &self.devices[task.rank as usize];
                    let _guard = device.bind()?;
                    let copy = device.driver().api().cuMemcpyDtoDAsync().map_err(missing)?;
                    // SAFETY: as above, on both sides.
                    let code = unsafe { copy(to, from, size, stream.raw()) };
                    check("cuMemcpyDtoDAsync", code)?;
                }
                Work::Record(event) => self.events[*event].record(stream)?,
                Work::Wait(event) => stream.wait(&self.events[*event])?,
            }
        }
        Ok(())
    }

    fn at(&self, (buffer, offset): (usize, u64)) -> CUdeviceptr {
        CUdeviceptr(self.memory[buffer].address + offset)
    }

    /// Puts addresses of buffers where they belong.
    fn addresses(&self, places: &[(usize, usize, u64)], bytes: &mut [u8]) {
        for &(at, buffer, offset) in places {
            let CUdeviceptr(address) = self.at((buffer, offset));
            bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
    }

    fn launch(&self, rank: u32, grid: &Grid, stream: &Stream) -> Result<(), Failure> {
        let mut blocks: Vec<Vec<u64>> = Vec::new();
        for parameter in &grid.parameters {
            let mut bytes = parameter.bytes.clone();
            self.addresses(&parameter.addresses, &mut bytes);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            // In words, so that every parameter is aligned.
            let words = bytes.chunks_exact(8).map(|chunk| {
                let mut word = [0; 8];
                word.copy_from_slice(chunk);
                u64::from_le_bytes(word)
            });
            blocks.push(words.collect());
        }
        let mut values: Vec<*mut c_void> = blocks
            .iter_mut()
            .map(|block| block.as_mut_ptr().cast())
            .collect();
        let device = &self.devices[rank as usize];
        let _guard = device.bind()?;
        let function = self.functions[&(rank, grid.kernel.as_str())];
        let ([gx, gy, gz], [bx, by, bz]) = (grid.grid, grid.block);
        // SAFETY: function and stream are live; every parameter has at least its size, which was compared with the PTX. The
        // kernel runs on the emulated machine alone, which keeps it to the machine's memory.
        let code = unsafe {
            (device.driver().api().cuLaunchKernel)(
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                grid.shared,
                stream.raw(),
                values.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        match code.is_success() {
            true => Ok(()),
            false => Err(Failure::Use(format!(
                "line {}: the device refuses to launch `{}`: {code:?}",
                grid.line, grid.kernel
            ))),
        }
    }
}
