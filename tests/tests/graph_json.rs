//! Text that is no dump of a graph, or one of another version.

use slabfence::graph::{Dump, JsonError, SCHEMA};

/// A dump without memory, with these nodes and edges.
fn text(nodes: &str, edges: &str, places: &str) -> String {
    format!(
        r#"{{"schema": {SCHEMA}, "driver_version": 12040, "device": 0, "device_name": "d",
            "graph": {{"nodes": [{nodes}], "edges": [{edges}]}}, "places": [{places}], "member of a newer writer": 1}}"#
    )
}

fn refused(text: &str) -> String {
    Dump::from_json(text).unwrap_err().to_string()
}

#[test]
fn members_that_are_not_known_are_ignored() {
    let dump =
        Dump::from_json(&text(r#"{"type": 99, "kind": "wrong", "new": []}"#, "", "")).unwrap();
    assert_eq!(dump.contents.nodes[0].kind.0, 99);
    assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);
    assert!(dump.to_json().contains("unknown node type 99"));
}

#[test]
fn another_schema_is_refused_by_number() {
    let error = Dump::from_json(r#"{"schema": 2}"#).unwrap_err();
    assert!(matches!(error, JsonError::Schema(2)));
    assert!(error.to_string().contains("schema 2; this version reads 1"));
}

#[test]
fn what_means_nothing_is_refused() {
    assert!(refused("").starts_with("no graph dump: "));
    let edge = r#"{"from": 0, "to": 1, "type": 0, "from_port": 0, "to_port": 0}"#;
    let node = r#"{"type": 5}"#;
    assert!(Dump::from_json(&text(&[node, node].join(","), edge, "")).is_ok());
    let said = refused(&text(node, edge, ""));
    assert_eq!(
        said,
        "no graph dump: an edge of node 1, and there are 1 nodes"
    );
    let two = r#"{"type": 5, "event": "0x1", "free": "0x2"}"#;
    assert_eq!(
        refused(&text(two, "", "")),
        "no graph dump: a node that does two things"
    );
    for word in ["12", "0x", "0x+1", "0x10000000000000000", "0xg"] {
        let node = format!(r#"{{"type": 7, "event": "{word}"}}"#);
        assert!(
            refused(&text(&node, "", "")).contains("no 64-bit number"),
            "{word}"
        );
    }
    for bytes in ["0", "0g", "é"] {
        let node = format!(
            r#"{{"type": 0, "kernel": {{"function": null, "grid": [1, 1, 1], "block": [1, 1, 1], "shared_bytes": 0,
                "attributes": {{}}, "params": [{{"offset": 0, "bytes": "{bytes}"}}]}}}}"#
        );
        assert!(
            refused(&text(&node, "", "")).contains("two digits"),
            "{bytes}"
        );
    }
    let pool = |part: &str, slot: &str| {
        let range = format!(
            r#"{{"part": "{part}", "channel": null, "slot": {slot}, "owner": 0, "source": null, "base": "0x10", "bytes": 8}}"#
        );
        text(
            "",
            "",
            &format!(r#"{{"address": "0x10", "pool": {range}}}"#),
        )
    };
    assert!(Dump::from_json(&pool("local", "\"A\"")).is_ok());
    assert_eq!(
        refused(&pool("loca", "null")),
        r#"no graph dump: part "loca""#
    );
    assert_eq!(
        refused(&pool("local", "\"C\"")),
        r#"no graph dump: slot "C""#
    );
    let both = r#"{"address": "0x10", "unknown": "w",
        "allocation": {"base": "0x10", "bytes": 1, "device": null, "host": false}}"#;
    assert_eq!(
        refused(&text("", "", both)),
        "no graph dump: 0x10 in two places"
    );
}
