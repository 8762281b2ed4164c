//! What a child could do with its parent's devices, memory and streams.

use std::sync::Arc;

use slabfence::Result;
use slabfence::attention::{Attention, AttentionKernels};
use slabfence::collective::LseBase;
use slabfence::driver::{
    CaptureMode, Device, DeviceBuffer, Driver, Event, Module, PinnedBuffer, Stream,
};
use slabfence::layout::{ABI, ClockParams, DType, MAGIC, OperationKind, Preamble};
use slabfence::slab::{Arena, Local, Mapping, Note};

use super::{Attempt, CLOCK, Stage, no};

/// Of nobody.
const NOTE: Note = Note {
    channel: 0,
    owner: 0,
    slot: None,
    source: None,
    phase: None,
};

impl Stage<'_> {
    pub(super) fn devices(&self) -> Vec<Attempt> {
        let device = &self.member.device;
        let driver = device.driver();
        let own = device.ordinal();
        vec![
            ("Driver::open", no(Driver::open())),
            (
                "Driver::from_api",
                no(Driver::from_api(driver.api().clone())),
            ),
            ("Driver::devices", no(driver.devices())),
            ("Device::open", no(Device::open(driver, own))),
            ("Device::bind", no(device.bind())),
            ("Device::synchronize", device.synchronize()),
            ("Device::granularity", no(device.granularity())),
            (
                "Device::is_accessible_from",
                no(device.is_accessible_from(own)),
            ),
            (
                "Device::native_atomics_to",
                no(device.native_atomics_to(own)),
            ),
            (
                "Device::allocation",
                no(device.allocation(self.buffer.ptr().raw())),
            ),
            (
                "Module::from_ptx",
                no(Module::from_ptx(device, "child", "child")),
            ),
            (
                "Module::from_cubin",
                no(Module::from_cubin(
                    device,
                    "child",
                    self.image.cubins[0].bytes,
                )),
            ),
            ("Module::load", no(Module::load(device, self.image))),
            ("Module::kernel", no(self.module.kernel(CLOCK.1))),
            (
                "Kernel::max_resident_ctas",
                no(self.clock.max_resident_ctas(32)),
            ),
            ("Kernel::launch", self.launch()),
            ("AttentionKernels::load", no(AttentionKernels::load(device))),
            ("Attention::enqueue", self.attend()),
        ]
    }

    #[allow(unsafe_code, reason = "a launch, which must not come about")]
    fn launch(&self) -> Result<()> {
        let params = ClockParams {
            preamble: Preamble {
                magic: MAGIC,
                abi: ABI,
                operation: OperationKind::Clock.code(),
            },
            output: self.buffer.ptr().raw(),
            reserved: 0,
        };
        // SAFETY: it writes 16 bytes to the buffer, which the parent keeps.
        unsafe { self.clock.launch(&self.stream, 1, 32, &params) }
    }

    #[allow(unsafe_code, reason = "a launch, which must not come about")]
    fn attend(&self) -> Result<()> {
        let at = self.buffer.ptr();
        let one = Attention {
            query: at,
            key: at,
            value: at,
            output: at,
            lse: at,
            key_stride: 16,
            key_head_stride: 0,
            value_stride: 16,
            value_head_stride: 0,
            batch: 1,
            heads: 1,
            keys: 1,
            key_dim: 8,
            value_dim: 8,
            scale: 1.0,
            base: LseBase::E,
            dtype: DType::Bf16,
        };
        // SAFETY: one row of 16 bytes each, inside the buffer, which the parent keeps.
        unsafe { one.enqueue(&self.attention, &self.stream) }
    }

    #[allow(unsafe_code, reason = "copies, which must not come about")]
    fn copies(&self) -> [Result<()>; 2] {
        let (buffer, pinned, stream) = (&self.buffer, &self.pinned, &self.stream);
        // SAFETY: the parent keeps both buffers.
        let write = unsafe { buffer.write_async(0, pinned, 0, 8, stream) };
        // SAFETY: as above.
        let read = unsafe { buffer.read_async(0, pinned, 0, 8, stream) };
        [write, read]
    }

    pub(super) fn memory(&mut self) -> Vec<Attempt> {
        let [write_async, read_async] = self.copies();
        let device = &self.member.device;
        let (driver, range) = (device.driver(), self.mapping.range());
        let (buffer, pinned, arena) = (&self.buffer, &self.pinned, &mut self.arena);
        let mut bytes = [0; 8];
        vec![
            ("DeviceBuffer::new", no(DeviceBuffer::new(device, 8))),
            ("DeviceBuffer::write", buffer.write(0, &[1; 8])),
            ("DeviceBuffer::write of nothing", buffer.write(0, &[])),
            ("DeviceBuffer::read", buffer.read(0, &mut bytes)),
            ("DeviceBuffer::fill", buffer.fill(1)),
            ("DeviceBuffer::write_async", write_async),
            ("DeviceBuffer::read_async", read_async),
            ("PinnedBuffer::new", no(PinnedBuffer::new(device, 8))),
            ("PinnedBuffer::load", no(pinned.load(0))),
            ("PinnedBuffer::store", pinned.store(0, 1)),
            ("PinnedBuffer::read", pinned.read(0, &mut bytes)),
            ("PinnedBuffer::write", pinned.write(0, &[1; 8])),
            ("PinnedBuffer::write of nothing", pinned.write(0, &[])),
            ("Arena::create", no(Arena::<Local>::create(device, 8, 1))),
            ("Arena::write", arena.write(1, 0, &[1; 8])),
            ("Arena::write of nothing", arena.write(1, 0, &[])),
            ("Arena::read", arena.read(1, 0, &mut bytes)),
            ("Arena::fill", arena.fill(1, 0, 1, 8)),
            ("Arena::grant", arena.grant(&[])),
            ("Arena::close", arena.close()),
            ("Range::announce", range.announce(driver, NOTE)),
            ("Range::forget", range.forget(driver)),
            ("Mapping::create", no(Mapping::<Local>::create(device, 8))),
            ("Mapping::write", self.mapping.write(0, &[1; 8])),
            ("Mapping::read", self.mapping.read(0, &mut bytes)),
            ("Mapping::fill", self.mapping.fill(0, 1, 8)),
            ("Mapping::grant", self.mapping.grant(&[device.ordinal()])),
            ("Mapping::close", self.mapping.close()),
            ("Mapping::close of a closed one", self.closed.close()),
        ]
    }

    pub(super) fn streams(&mut self) -> Vec<Attempt> {
        let device = &self.member.device;
        let (stream, event, graph) = (&self.stream, &self.event, &self.graph);
        vec![
            ("Stream::new", no(Stream::new(device))),
            ("Stream::id", no(stream.id())),
            ("Stream::synchronize", stream.synchronize()),
            ("Stream::query", no(stream.query())),
            ("Stream::wait", stream.wait(event)),
            (
                "Stream::begin_capture",
                stream.begin_capture(CaptureMode::Relaxed),
            ),
            ("Stream::capture_status", no(stream.capture_status())),
            (
                "Stream::retain_in_capture",
                stream.retain_in_capture(Arc::new(())),
            ),
            ("Stream::end_capture", no(stream.end_capture())),
            ("Event::new", no(Event::new(device))),
            ("Event::record", event.record(stream)),
            ("Event::query", no(event.query())),
            ("Event::synchronize", event.synchronize()),
            ("Event::since", no(event.since(event))),
            ("Graph::instantiate", no(graph.instantiate())),
            ("Graph::contents", no(graph.contents())),
            ("Graph::nodes", no(graph.nodes())),
            ("Graph::kernel_nodes", no(graph.kernel_nodes())),
            ("Graph::retain", graph.retain(Arc::new(()))),
            ("GraphExec::upload", self.exec.upload(stream)),
            ("GraphExec::launch", self.exec.launch(stream)),
        ]
    }
}
