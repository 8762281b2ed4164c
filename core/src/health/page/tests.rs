use super::*;
use crate::driver::fake;

/// What is made of a record that is read so, one reading after the other, and how often it was read.
fn of(readings: &[Words]) -> (Option<Words>, usize) {
    let mut count = 0;
    let settled = settled(|| {
        count += 1;
        Ok(readings[(count - 1).min(readings.len() - 1)])
    });
    (settled.unwrap(), count)
}

#[test]
fn a_record_that_changes_while_it_is_read_is_read_again() {
    let (none, old, new) = ([0; WORDS], [5; WORDS], [6; WORDS]);
    // New fields under the old state.
    let mut mixed = new;
    mixed[0] = 5;
    assert_eq!(of(&[none]), (None, 1));
    assert_eq!(of(&[old]), (Some(old), 2));
    assert_eq!(of(&[old, new]), (Some(new), 3));
    assert_eq!(of(&[mixed, new]), (Some(new), 3));
    assert_eq!(of(&[old, mixed, new]), (Some(new), 4));
    // A reset came between.
    assert_eq!(of(&[old, none]), (None, 2));
    let ever: Vec<Words> = (1..100).map(|i| [i; WORDS]).collect();
    assert_eq!(of(&ever), (Some([16; WORDS]), READINGS));
}

const FAR: Duration = Duration::from_secs(60);

/// How long it takes until a page of two channels has settled, with this header, while `body` does something to it.
fn settles(header: u64, within: Duration, body: impl FnOnce(&HealthPage) + Send) -> Duration {
    let page = HealthPage::new(&fake::device(), 2, Clock::GlobalTimer).unwrap();
    page.buffer.store(HEADER_WORD, header).unwrap();
    let begin = Instant::now();
    thread::scope(|threads| {
        threads.spawn(|| body(&page));
        let settled = page.settle(Slip::Fault, 0..2, begin + within);
        settled.unwrap();
    });
    begin.elapsed()
}

#[test]
fn a_record_that_comes_after_the_word_of_its_pool_is_waited_for() {
    let took = settles(3, FAR, |page| {
        thread::sleep(Duration::from_millis(20));
        let fault = HealthPage::offset(1) + offset_of!(ChannelHealth, fault);
        page.buffer.store(fault, 7).unwrap();
    });
    assert!((Duration::from_millis(20)..FAR).contains(&took), "{took:?}");
}

#[test]
fn a_record_that_does_not_come_or_is_forgotten_is_not_waited_for() {
    let moment = Duration::from_millis(20);
    let took = settles(3, moment, |_| ());
    assert!((moment..FAR).contains(&took), "{took:?}");
    let took = settles(3, FAR, |page| page.clear().unwrap());
    assert!(took < FAR, "{took:?}");
    // Nothing has failed: a wait was long.
    let took = settles(1 << 32, FAR, |_| ());
    assert!(took < FAR, "{took:?}");
    // No channel is left that could have one.
    let page = HealthPage::new(&fake::device(), 2, Clock::GlobalTimer).unwrap();
    page.buffer.store(HEADER_WORD, 3).unwrap();
    let begin = Instant::now();
    page.settle(Slip::Fault, 0..0, begin + FAR).unwrap();
    assert!(begin.elapsed() < FAR);
}

#[test]
fn a_record_that_has_not_come_in_a_moment_is_waited_for_once_and_after_a_reset_again() {
    let page = HealthPage::new(&fake::device(), 2, Clock::GlobalTimer).unwrap();
    let took = || {
        page.buffer.store(HEADER_WORD, 3).unwrap();
        let begin = Instant::now();
        page.settle(Slip::Fault, 0..2, begin + MOMENT).unwrap();
        begin.elapsed()
    };
    assert!(took() >= MOMENT);
    // A whole moment would be noticed on a busy machine too: none of these may sleep at all.
    let again = Instant::now();
    for _ in 0..20 {
        took();
    }
    assert!(again.elapsed() < 20 * MOMENT);
    page.clear().unwrap();
    assert!(took() >= MOMENT);
}
