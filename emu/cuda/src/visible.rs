//! `CUDA_VISIBLE_DEVICES`, read as a real driver does.

/// The devices of the host that a list names, in its order. A word is a device's number, or the beginning of its UUID as
/// `GPU-…` that no other device's has. What follows a word that names no device is not seen, and nothing is where a device
/// is named twice.
pub fn seen(list: &str, uuids: &[[u8; 16]]) -> Vec<u32> {
    let mut seen = Vec::new();
    for device in list.split(',').map_while(|word| named(word.trim(), uuids)) {
        if seen.contains(&device) {
            return Vec::new();
        }
        seen.push(device);
    }
    seen
}

fn named(word: &str, uuids: &[[u8; 16]]) -> Option<u32> {
    let all = (0u32..).zip(uuids);
    if !word.starts_with("GPU-") {
        let number: u32 = word.parse().ok()?;
        return all
            .map(|(device, _)| device)
            .find(|&device| device == number);
    }
    let word = word.to_ascii_lowercase();
    let mut found = all.filter(|(_, uuid)| text(uuid).starts_with(&word));
    let (device, _) = found.next()?;
    found.next().is_none().then_some(device)
}

/// A UUID as `nvidia-smi -L` writes it, all of it in small letters.
fn text(uuid: &[u8; 16]) -> String {
    let mut text = "gpu".to_owned();
    for (index, byte) in uuid.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuids() -> Vec<[u8; 16]> {
        let last = |byte| {
            let mut uuid = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\x00";
            uuid[15] = byte;
            uuid
        };
        vec![last(0x10), last(0x11), last(0x2a)]
    }

    #[test]
    fn devices_are_seen_in_the_order_of_the_list() {
        for (list, expected) in [
            ("0,1,2", &[0, 1, 2][..]),
            ("2,0", &[2, 0]),
            ("1", &[1]),
            (" 1, 0 ", &[1, 0]),
        ] {
            assert_eq!(seen(list, &uuids()), expected, "{list}");
        }
    }

    #[test]
    fn what_follows_a_word_that_names_no_device_is_not_seen() {
        for (list, expected) in [
            ("1,3,0", &[1][..]),
            ("1,-1,0", &[1]),
            ("1,,0", &[1]),
            ("1,MIG-0,0", &[1]),
            ("-1", &[]),
            ("none", &[]),
            ("", &[]),
        ] {
            assert_eq!(seen(list, &uuids()), expected, "{list}");
        }
    }

    #[test]
    fn nothing_is_seen_where_a_device_is_named_twice() {
        assert_eq!(seen("0,1,0", &uuids()), []);
        let named = "GPU-01234567-89ab-cdef-0123-456789abcd11";
        assert_eq!(seen(&format!("1,{named}"), &uuids()), []);
    }

    #[test]
    fn a_device_is_named_by_what_no_other_uuid_begins_with() {
        let begin = "GPU-01234567-89ab-cdef-0123-456789abcd";
        for (end, expected) in [
            ("2a", &[2][..]),
            ("2A", &[2]),
            ("2", &[2]),
            ("11,0", &[1, 0]),
            ("1", &[]),
            ("", &[]),
            ("2ab", &[]),
        ] {
            let list = format!("{begin}{end}");
            assert_eq!(seen(&list, &uuids()), expected, "{list}");
        }
    }
}
