//! The `slabfence` command, run as its users run it, on the emulated machine.

mod bad_input;
mod bench;
mod check;
mod check_alone;
mod check_assumptions;
mod check_mismatch;
mod check_scenarios;
mod decode;
mod dump;
mod embed;
mod files;
mod linkage;
mod litmus;
mod outputs;
mod processes;
mod run;
mod scenario_files;
mod scenario_memory;
mod scenario_page;
mod scenario_size;
mod scenario_steps;
mod scenario_tags;
mod scenario_waits;
mod scenarios;
mod source_lines;
mod status;
