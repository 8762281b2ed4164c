//! One switch for each rule of the protocol.

/// Who advances the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochRule {
    /// The last CTA to arrive.
    LastArrival,
    /// CTA 0, as soon as it has read it.
    FirstCta,
    /// Every CTA has an epoch of its own.
    EachCta,
}

/// What the ticket adds up beside the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketSum {
    /// Nothing.
    Count,
    /// The operation's tag.
    Tag,
    /// The operation's tag and, in bits of its own, the epoch that the CTA has read.
    TagAndEpoch,
}

/// What an entry line says and when it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryLine {
    /// Epoch and tag in two words that both name the epoch; counts when both name the one awaited.
    Checked,
    /// The same words; counts by the first alone.
    FirstWord,
    /// The epoch only.
    NoTag,
    /// Nobody waits for it.
    Unread,
}

/// When the entry lines are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// Beside the data, in a warp of its own. A tag that differs is reported at once.
    Beside,
    /// The same, but a tag that differs is reported when all lines have come.
    BesideLate,
    /// By the worker, when all data have come.
    BehindData,
}

/// When a data flag lets its reader go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagMatch {
    /// When it equals the epoch.
    Equal,
    /// When its lowest bits equal the epoch's.
    EqualLow(u32),
    /// When it is not below the epoch, as signed numbers of so many bits.
    AtLeast(u32),
}

/// Where the flag is stored and polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagOrder {
    /// Stored behind the rows, polled before them.
    Ordered,
    /// Stored without release: before the rows, as far as others see.
    StoredFirst,
    /// Polled without acquire: behind the rows, as far as the reader sees.
    PolledLast,
}

/// What keeps old stamps from passing for new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scrub {
    /// The writer stores a stamp of the slot's other parity, and spares what the operation writes.
    Writer,
    /// The same with the operation's own stamp.
    WriterOwnStamp,
    /// The writer spares nothing.
    WriterAlways,
    /// The owner stores it in the slot of the next operation.
    OwnerAhead,
    /// Nothing.
    Nobody,
}

/// When the overlap guard fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// `retired < started`.
    Below,
    /// `retired ≠ started`.
    Differs,
    /// Never.
    Off,
}

/// What orders the accesses of a call before those of the next one of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// The end of a kernel: the assumption of `docs/memory-model.md`.
    Performed,
    /// Nothing.
    Open,
}

/// The epoch that a reset or a reuse starts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetEpoch {
    /// The largest of any rank, plus so many.
    AboveAll(i8),
    /// The rank's own plus 2.
    AboveOwn,
    /// The first epoch of a fresh channel.
    First,
}

/// The protocol's rules. [`Rules::default`] is what the kernels and the library do, or, for packets, two-shot forms and
/// reuse, what `docs/protocol.md` prescribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Who advances the epoch.
    pub epoch: EpochRule,
    /// The CTA that advances the epoch reports an old value that is not its own.
    pub epoch_checked: bool,
    /// It stores the larger of the old value and its own next one; else its own next one.
    pub epoch_rises: bool,
    /// `started` is raised before the epoch moves on, as other calls of the channel see it. No rule of the kernels, whose
    /// two stores nothing orders: what overlaps is explored with either.
    pub started_first: bool,
    /// `started` names the epoch that it belongs to. A call that finds another one there overlaps.
    pub started_named: bool,
    /// What the ticket adds up; a wrong sum is reported.
    pub ticket: TicketSum,
    /// The warps of a CTA compare the epochs that they have read, behind the CTA barrier.
    pub warps_agree: bool,
    /// An overlap that the ticket or the exchange tells is reported before the entry lines are polled.
    pub overlap_at_once: bool,
    /// A CTA that found poison arrives at the ticket.
    pub skipped_arrive: bool,
    /// A warp of a CTA that found poison counts in `retired`.
    pub skipped_retire: bool,
    /// A call that found poison reports so.
    pub skipped_report: bool,
    /// A call looks at the poison words before it stores anything.
    pub poison_at_start: bool,
    /// Every wait looks at the poison words.
    pub poison_in_waits: bool,
    /// The slot is the epoch's lowest bit; else the call's place in its graph chose it ([`Scenario::capture`]).
    ///
    /// [`Scenario::capture`]: crate::Scenario::capture
    pub slot_by_epoch: bool,
    /// Staging has two slots.
    pub two_slots: bool,
    /// Entry lines have two slots.
    pub two_entry_slots: bool,
    /// What an entry line says.
    pub entry: EntryLine,
    /// When entry lines are polled.
    pub meeting: Meeting,
    /// Each entry line is looked at before the CTA arrives too, and not again if it has come by then.
    pub early_look: bool,
    /// When a flag lets its reader go.
    pub flag: FlagMatch,
    /// Where the flag stands among the rows.
    pub flag_order: FlagOrder,
    /// Every CTA has a flag of its own; else CTA 0's speaks for all.
    pub flag_each_cta: bool,
    /// Every phase has flags of its own.
    pub flag_each_phase: bool,
    /// Every phase has staging of its own.
    pub staging_each_phase: bool,
    /// The overlap guard.
    pub guard: Guard,
    /// What keeps old stamps from passing.
    pub scrub: Scrub,
    /// Packet ranges are filled with stamps of the other parity when they are new, reset or reused.
    pub fill: bool,
    /// What the end of a kernel orders.
    pub boundary: Boundary,
    /// The epoch behind a reset.
    pub reset_epoch: ResetEpoch,
    /// A reset clears poison only when every rank is at rest.
    pub reset_agrees_first: bool,
    /// A reset ends with a barrier of all ranks.
    pub reset_barrier: bool,
    /// A reset sets `retired` to `started`.
    pub reset_guard: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            epoch: EpochRule::LastArrival,
            epoch_checked: true,
            epoch_rises: true,
            started_first: true,
            started_named: true,
            ticket: TicketSum::TagAndEpoch,
            warps_agree: true,
            overlap_at_once: true,
            skipped_arrive: true,
            skipped_retire: true,
            skipped_report: true,
            poison_at_start: true,
            poison_in_waits: true,
            slot_by_epoch: true,
            two_slots: true,
            two_entry_slots: true,
            entry: EntryLine::Checked,
            meeting: Meeting::Beside,
            early_look: true,
            flag: FlagMatch::Equal,
            flag_order: FlagOrder::Ordered,
            flag_each_cta: true,
            flag_each_phase: true,
            staging_each_phase: true,
            guard: Guard::Below,
            scrub: Scrub::Writer,
            fill: true,
            boundary: Boundary::Performed,
            reset_epoch: ResetEpoch::AboveAll(2),
            reset_agrees_first: true,
            reset_barrier: true,
            reset_guard: true,
        }
    }
}
