//! Capture scopes: which channel an operation goes to while a graph is captured.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use slabfence_sys::CUstream;

use crate::driver::{CaptureStatus, Stream, fork};
use crate::error::{Error, Result};
use crate::group::Speaker;

use super::lane::{Channel, GraphHold, Lane};
use super::pool::Pool;
use super::shared::Shared;

thread_local! {
    /// Scopes of this thread, innermost last.
    static SCOPES: RefCell<Scopes> = const { RefCell::new(Scopes(Vec::new())) };
}

/// The list of a thread. What is still in it when the thread ends was leaked, and is left: nobody else could.
#[derive(Debug)]
struct Scopes(Vec<Rc<Active>>);

impl Drop for Scopes {
    fn drop(&mut self) {
        for active in &self.0 {
            active.lane.scoped.store(false, Ordering::Release);
        }
    }
}

/// A scope that has been entered and not left.
#[derive(Debug)]
struct Active {
    pool: u64,
    speaker: Speaker,
    lane: Arc<Lane>,
    label: String,
    owner: Owner,
    /// The capture that operations were last recorded into, and how many of them.
    capture: Cell<Option<(u64, u64)>>,
}

/// The stream that a scope belongs to. Handles are recycled; ids, where the driver has them, are not.
#[derive(Debug, Clone, Copy)]
struct Owner {
    handle: CUstream,
    id: Option<u64>,
}

impl Owner {
    fn of(stream: &Stream) -> Result<Self> {
        Ok(Self {
            handle: stream.raw(),
            id: stream.id()?,
        })
    }

    /// Whether it is this stream. One that captures has only its handle to show: the driver refuses to tell its id
    /// (error 900 on driver 580). So a host that destroys the owner stream inside the scope and captures on another
    /// with the recycled handle is not found out; before the capture begins it is.
    fn is(&self, stream: &Stream, captures: bool) -> Result<bool> {
        Ok(self.handle == stream.raw() && (captures || self.id == stream.id()?))
    }
}

/// Owns a channel for the capture of one graph, on this thread. Left by [`finish`](Self::finish) or by dropping it; scopes
/// of a pool are left in reverse order.
#[derive(Debug)]
#[must_use = "the scope ends when it is dropped"]
pub struct CaptureScope {
    active: Rc<Active>,
    left: bool,
    /// Scopes belong to the thread that entered them.
    _thread: PhantomData<*mut ()>,
}

impl Pool {
    /// Enters a capture scope, before the capture begins. Until it is left, operations on `stream` go to the channel
    /// `name`, whichever channel of the pool they are called on, also while the stream does not capture yet (warm-ups);
    /// operations of this pool on other streams of this thread are refused. Graphs of one channel that may be replayed in
    /// different orders on two ranks need labels, see [`capture_labelled`](Self::capture_labelled).
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the channel is not prepared, another scope owns it, or the stream captures already.
    pub fn capture(&self, name: &str, stream: &Stream) -> Result<CaptureScope> {
        self.capture_labelled(name, name, stream)
    }

    /// [`capture`](Self::capture) with a label of its own for the graph. The label is part of every operation's tag: graphs
    /// that share a channel and are replayed in different orders on two ranks get a diagnosis when their labels differ.
    pub fn capture_labelled(
        &self,
        name: &str,
        label: &str,
        stream: &Stream,
    ) -> Result<CaptureScope> {
        let refuse = |why: String| Error::Refused {
            operation: "Pool::capture",
            why,
        };
        check_device(&self.shared, stream, "Pool::capture")?;
        if stream.capture_status()? != CaptureStatus::None {
            return Err(refuse(
                "the stream captures already; enter the scope before the capture begins".to_owned(),
            ));
        }
        let owner = Owner::of(stream)?;
        let taken = self.with_lane(name, "Pool::capture", |lane| {
            // While the state is held: a retirement that comes later sees it, and after one that came before there is no lane.
            (!lane.scoped.swap(true, Ordering::AcqRel)).then(|| Arc::clone(lane))
        })?;
        let lane = taken.ok_or_else(|| {
            refuse(format!(
                "another scope owns channel '{name}'; leave it first, or use another channel"
            ))
        })?;
        let active = Rc::new(Active {
            pool: self.shared.number,
            speaker: self.shared.group.speaker(),
            lane,
            label: label.to_owned(),
            owner,
            capture: Cell::new(None),
        });
        let listed = SCOPES.try_with(|scopes| scopes.borrow_mut().0.push(Rc::clone(&active)));
        if listed.is_err() {
            active.lane.scoped.store(false, Ordering::Release);
            return Err(refuse("the thread is ending".to_owned()));
        }
        log::debug!(
            "{}: capture scope '{label}' of channel '{name}' entered",
            active.speaker
        );
        Ok(CaptureScope {
            active,
            left: false,
            _thread: PhantomData,
        })
    }
}

impl CaptureScope {
    /// Leaves the scope.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a scope of the same pool that was entered later has not been left; this one is left all the
    /// same.
    pub fn finish(mut self) -> Result<()> {
        fork::refuse()?;
        self.leave()
    }

    fn leave(&mut self) -> Result<()> {
        if self.left {
            return Ok(());
        }
        self.left = true;
        let inner = SCOPES.with_borrow_mut(|scopes| {
            let scopes = &mut scopes.0;
            let place = scopes.iter().position(|s| Rc::ptr_eq(s, &self.active))?;
            let later = scopes[place + 1..].iter();
            let inner = later.rev().find(|s| s.pool == self.active.pool).cloned();
            scopes.remove(place);
            inner
        });
        self.active.lane.scoped.store(false, Ordering::Release);
        let Active {
            speaker,
            label,
            lane,
            ..
        } = &*self.active;
        log::debug!(
            "{speaker}: capture scope '{label}' of channel '{}' left",
            lane.name
        );
        match inner {
            None => Ok(()),
            Some(inner) => Err(Error::Refused {
                operation: "CaptureScope::finish",
                why: format!(
                    "scope '{}' was left while scope '{}', entered later, is active; leave scopes in reverse order",
                    self.active.label, inner.label
                ),
            }),
        }
    }
}

impl Drop for CaptureScope {
    fn drop(&mut self) {
        // At the end of the thread the list may be gone, and with it every scope. In a forked child it is the parent's.
        if fork::forked() || SCOPES.try_with(|_| ()).is_err() {
            return;
        }
        if let Err(error) = self.leave() {
            log::error!("{}: {error}", self.active.speaker);
        }
    }
}

/// Where an operation goes.
#[derive(Debug)]
pub(crate) struct Route {
    pub lane: Arc<Lane>,
    scope: Option<Rc<Active>>,
    /// The running capture, if there is one.
    capture: Option<u64>,
}

/// Chooses the channel of an operation that was called on `channel` for `stream`.
pub(crate) fn route(channel: &Channel, stream: &Stream, operation: &'static str) -> Result<Route> {
    let refuse = |why: String| Error::Refused { operation, why };
    let pool = channel.pool.number;
    channel.lane.require_live(operation)?;
    check_device(&channel.pool, stream, operation)?;
    let capture = match stream.capture_status()? {
        CaptureStatus::None => None,
        CaptureStatus::Active { id, .. } => Some(id),
        CaptureStatus::Invalidated => {
            return Err(refuse(
                "the capture of the stream has failed; end it".to_owned(),
            ));
        }
    };
    // A thread whose list is gone is ending, and has no scopes.
    let scope = SCOPES.try_with(|scopes| {
        let scopes = scopes.borrow();
        let mut innermost = scopes.0.iter().rev();
        innermost.find(|scope| scope.pool == pool).cloned()
    });
    let Some(scope) = scope.ok().flatten() else {
        if capture.is_some() {
            return Err(refuse(
                "the stream captures outside a capture scope; enter one with Pool::capture before the capture begins"
                    .to_owned(),
            ));
        }
        if channel.lane.scoped.load(Ordering::Acquire) {
            return Err(refuse(format!(
                "a capture scope of another thread owns channel '{}'",
                channel.name()
            )));
        }
        return Ok(Route {
            lane: Arc::clone(&channel.lane),
            scope: None,
            capture: None,
        });
    };
    if !scope.owner.is(stream, capture.is_some())? {
        return Err(refuse(format!(
            "capture scope '{}' is active on this thread and belongs to another stream; issue its operations on that stream",
            scope.label
        )));
    }
    scope.lane.require_live(operation)?;
    Ok(Route {
        lane: Arc::clone(&scope.lane),
        scope: Some(scope),
        capture,
    })
}

impl Route {
    pub(crate) fn captures(&self) -> bool {
        self.capture.is_some()
    }

    /// The name that enters the tag.
    pub(crate) fn label(&self) -> &str {
        self.scope
            .as_ref()
            .map_or(&self.lane.name, |scope| &scope.label)
    }

    /// Position of the operation in its capture, from 1; 0 outside one.
    pub(crate) fn ordinal(&self) -> u64 {
        self.capture.map_or(0, |_| self.recorded() + 1)
    }

    /// Operations recorded so far into the running capture.
    fn recorded(&self) -> u64 {
        let last = self.scope.as_ref().and_then(|scope| scope.capture.get());
        match last {
            Some((capture, count)) if Some(capture) == self.capture => count,
            _ => 0,
        }
    }

    /// Makes the graph under construction hold the channel, once a capture.
    pub(crate) fn hold(&self, pool: &Arc<Shared>, stream: &Stream) -> Result<()> {
        if self.capture.is_none() || self.recorded() > 0 {
            return Ok(());
        }
        stream.retain_in_capture(Arc::new(GraphHold::new(pool, &self.lane)))
    }

    /// Counts the operation, once it is in the graph.
    pub(crate) fn recorded_one_more(&self) {
        if let (Some(scope), Some(capture)) = (&self.scope, self.capture) {
            scope.capture.set(Some((capture, self.recorded() + 1)));
        }
    }
}

fn check_device(pool: &Shared, stream: &Stream, operation: &'static str) -> Result<()> {
    let (there, here) = (stream.device().context(), pool.device.context());
    if there != here {
        return Err(Error::Argument {
            operation,
            what: format!(
                "the stream is of device {}, the pool of device {}",
                stream.device().ordinal(),
                pool.device.ordinal()
            ),
        });
    }
    Ok(())
}
