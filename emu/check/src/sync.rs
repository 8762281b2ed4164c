//! What the interpreter tells: accesses, fences, barriers and ends of lanes.

use std::sync::Arc;

use slabfence_emu_exec::{
    Access, AccessKind, CtaBarrier, Fence, Hook, Order, Site, Space, lanes_of,
};

use crate::{
    Checker,
    access::{Scene, report_stale},
    barrier::join_views,
    clock::Clock,
    protocol,
    registry::Synchronised,
};

impl Hook for Checker {
    const CHECKING: bool = true;

    fn access(&mut self, at: &Site<'_>, access: &Access<'_>) {
        if !matches!(access.space, Space::Global | Space::Const | Space::Shared) {
            return;
        }
        let key = self.enter(at);
        let (Some(block), Some(operation)) =
            (self.blocks.get_mut(&key), self.operations.get_mut(&key.0))
        else {
            return;
        };
        let Some(warp) = block.warps.get_mut(at.warp) else {
            return;
        };
        let site = warp.site(&mut self.registry, at.pc);
        if access.kind == AccessKind::Store && access.scope.is_none() {
            warp.stores(at.pc, access.lanes);
        }
        let mut scene = Scene {
            options: &self.options,
            registry: &mut self.registry,
            findings: &mut self.findings,
            operation,
            warp,
            access,
            pc: at.pc,
            site,
            joint: false,
            learnt: false,
        };
        match access.space {
            Space::Shared => scene.shared(&mut block.shared),
            _ => scene.global(&mut self.map),
        }
    }

    fn fence(&mut self, at: &Site<'_>, lanes: u32, fence: Fence) {
        let key = self.enter(at);
        let Some(warp) = self
            .blocks
            .get_mut(&key)
            .and_then(|b| b.warps.get_mut(at.warp))
        else {
            return;
        };
        let parts = (fence.order != Order::Release, fence.order != Order::Acquire);
        for lane in lanes_of(lanes) {
            let strict = fence.sc.then_some(&mut self.strict);
            warp.fence(lane, fence.scope, parts, strict, &self.registry);
        }
        warp.time += 1;
        warp.synchronised(&mut self.registry, Synchronised::Fence { pc: at.pc });
    }

    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>) {
        let key = self.enter(at);
        let Some(block) = self.blocks.get_mut(&key) else {
            return;
        };
        match event {
            CtaBarrier::Arrived { waits: true, .. } => {}
            CtaBarrier::Arrived { id, lanes, .. } => {
                let Some(warp) = block.warps.get_mut(at.warp) else {
                    return;
                };
                let clock = block.arrived[id as usize & 15].get_or_insert_with(Clock::default);
                clock.join(&warp.view);
                warp.gather(lanes, clock);
                warp.time += 1;
            }
            CtaBarrier::Completed { id, waited, .. } => {
                let there = || {
                    block
                        .warps
                        .iter()
                        .zip(waited)
                        .filter(|(_, lanes)| **lanes != 0)
                };
                let mut clock = join_views(there().map(|(warp, _)| &warp.view));
                if let Some(arrived) = block.arrived[id as usize & 15].take() {
                    clock.join(&arrived);
                }
                for (warp, lanes) in there() {
                    warp.gather(*lanes, &mut clock);
                }
                let clock = Arc::new(clock);
                for (warp, lanes) in block.warps.iter_mut().zip(waited) {
                    if *lanes != 0 {
                        warp.enlighten(*lanes, &clock);
                        warp.time += 1;
                        let on = Synchronised::Barrier { id, pc: at.pc };
                        warp.synchronised(&mut self.registry, on);
                    }
                }
            }
        }
    }

    fn warp_barrier(&mut self, at: &Site<'_>, lanes: u32) {
        let key = self.enter(at);
        if let Some(warp) = self
            .blocks
            .get_mut(&key)
            .and_then(|b| b.warps.get_mut(at.warp))
        {
            warp.meet(lanes);
            warp.synchronised(&mut self.registry, Synchronised::Warp { pc: at.pc });
        }
    }

    fn exit(&mut self, at: &Site<'_>, lanes: u32) {
        let key = self.enter(at);
        let (Some(block), Some(operation)) =
            (self.blocks.get_mut(&key), self.operations.get_mut(&key.0))
        else {
            return;
        };
        let Some(warp) = block.warps.get_mut(at.warp) else {
            return;
        };
        for lane in lanes_of(lanes) {
            if operation.number().is_none() {
                protocol::settle(warp, lane, &mut self.map);
            }
            let stale = protocol::confirm(warp, lane, operation.number());
            report_stale(stale, &self.map, &self.registry, &mut self.findings);
        }
        warp.end(lanes, &mut operation.end);
        if warp.live == 0 {
            self.slots.give(warp.slot, warp.time);
        }
        if block.warps.iter().all(|warp| warp.live == 0) {
            self.blocks.remove(&key);
            self.current = None;
        }
    }
}
