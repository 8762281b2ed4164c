//! The CUDA compilers that build the kernels, and the driver's headers: pinned wheels in a git-ignored folder, installed on first use.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::output::{Result, root};

/// The wheels, by version. All of one release: an unpinned nvvm writes PTX that this ptxas does not read, which is also
/// why pip must not resolve their dependencies. 13.0 because its PTX is what a 580 driver can still compile.
pub const WHEELS: [(&str, &str); 5] = [
    ("nvidia-cuda-nvcc", "13.0.88"),
    ("nvidia-cuda-crt", "13.0.88"),
    ("nvidia-nvvm", "13.0.88"),
    ("nvidia-cuda-runtime", "13.0.96"),
    ("nvidia-cuda-cccl", "13.0.85"),
];

/// The installed compilers.
pub struct Toolchain {
    bin: PathBuf,
}

/// The folder of `cuda.h` and `cudaTypedefs.h`.
pub fn headers() -> Result<PathBuf> {
    Ok(packages()?.join("nvidia/cu13/include"))
}

/// Where the pinned wheels are: in `.cuda/`, once what is missing has been installed.
fn packages() -> Result<PathBuf> {
    let venv = root().join(".cuda");
    if !has(&venv, &WHEELS) {
        println!("installing the CUDA 13.0 compilers into .cuda/ (about 100 MB to download)");
        install(&venv, &WHEELS)?;
    }
    site_packages(&venv)
        .filter(|_| has(&venv, &WHEELS))
        .ok_or_else(|| {
            "pip succeeded, yet the wheels are not in .cuda/: delete that folder and try again"
                .to_owned()
        })
}

impl Toolchain {
    /// Finds the pinned wheels in `.cuda/`, installing what is missing.
    pub fn locate() -> Result<Self> {
        let packages = packages()?;
        host_compiler()?;
        Ok(Self {
            bin: packages.join("nvidia/cu13/bin"),
        })
    }

    /// nvcc, to be run in `directory`, untouched by flags from the environment.
    pub fn nvcc(&self, directory: &Path) -> Command {
        let mut command = Command::new(self.bin.join("nvcc"));
        command
            .current_dir(directory)
            .env_remove("NVCC_PREPEND_FLAGS")
            .env_remove("NVCC_APPEND_FLAGS");
        command
    }

    /// ptxas, to be run in `directory`.
    pub fn ptxas(&self, directory: &Path) -> Command {
        let mut command = Command::new(self.bin.join("ptxas"));
        command.current_dir(directory);
        command
    }
}

/// The folder of CUDA's compiler at run time, NVRTC, which programs of others load: of the compilers' release.
pub fn nvrtc() -> Result<PathBuf> {
    python(("nvidia-cuda-nvrtc", "13.0.88"))?;
    let packages = site_packages(&root().join(".cuda"));
    let folder = packages.map(|packages| packages.join("nvidia/cu13/lib"));
    folder.ok_or_else(|| "there is no Python in .cuda/".to_owned())
}

/// A Python that has this package, of exactly this version, beside the compilers.
pub fn python(package: (&str, &str)) -> Result<PathBuf> {
    let venv = root().join(".cuda");
    if !has(&venv, &[package]) {
        install(&venv, &[package])?;
    }
    match has(&venv, &[package]) {
        true => Ok(venv.join("bin/python3")),
        false => Err(format!("pip succeeded, yet {} is not in .cuda/", package.0)),
    }
}

/// Runs a command to its end; a failure shows what it wrote.
pub fn run(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|e| format!("cannot run {program}: {e}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!(
        "{program} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Whether exactly these versions are installed.
fn has(venv: &Path, wheels: &[(&str, &str)]) -> bool {
    let Some(packages) = site_packages(venv) else {
        return false;
    };
    wheels.iter().all(|(name, version)| {
        let record = format!("{}-{version}.dist-info", name.replace('-', "_"));
        packages.join(record).is_dir()
    })
}

/// `lib/python3.x/site-packages`, whichever x.
fn site_packages(venv: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(venv.join("lib")).ok()?;
    versions
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")))
        .find(|path| path.is_dir())
}

fn install(venv: &Path, wheels: &[(&str, &str)]) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(venv)).map_err(|e| {
        format!(
            "{e}\na Python virtual environment is needed: on Debian, `apt-get install python3-venv`"
        )
    })?;
    let mut pip = Command::new(venv.join("bin/python3"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--disable-pip-version-check",
    ]);
    let pinned = wheels.iter();
    pip.args(pinned.map(|(name, version)| format!("{name}=={version}")));
    run(&mut pip).map(drop)
}

/// nvcc preprocesses with the host's C++ compiler.
fn host_compiler() -> Result<()> {
    const HINT: &str =
        "nvcc needs a C++ compiler for its preprocessor: on Debian, `apt-get install g++`";
    let answer = run(Command::new("gcc").arg("-print-prog-name=cc1plus"))
        .map_err(|e| format!("{e}\n{HINT}"))?;
    // gcc answers with the bare name when it has no such program.
    match String::from_utf8_lossy(&answer.stdout).contains('/') {
        true => Ok(()),
        false => Err(HINT.to_owned()),
    }
}
