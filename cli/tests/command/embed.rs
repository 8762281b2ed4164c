//! The example host, which checks its own results.

#[path = "../../examples/embed.rs"]
mod host;

#[test]
fn a_host_with_its_own_stream_memory_and_capture_embeds_the_library() {
    host::main().unwrap();
}
