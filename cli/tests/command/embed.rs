//! The example host, which checks its own results.

#[path = "../../examples/embed.rs"]
mod host;

#[test]
fn a_host_with_its_own_stream_memory_and_capture_embeds_the_library() {
    host::main().unwrap();
}

#[test]
fn embedding_takes_less_than_a_hundred_lines_of_code() {
    let lines = include_str!("../../examples/embed.rs")
        .lines()
        .map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(code.count() < 100);
}
