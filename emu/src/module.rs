//! Modules: PTX texts, their kernels and their global variables.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use slabfence_emu_exec::{Kernel, Launch};
use slabfence_emu_ptx::{GlobalSpace, Module as Ptx};

use crate::code::{Code, Status};
use crate::handle::{Kind, Table};
use crate::launch::SHARED_LIMIT;
use crate::machine::State;
use crate::translation::Translation;
use crate::variables::Variables;

/// A loaded module.
pub(crate) struct Module {
    /// The device of its context.
    device: u32,
    /// Its functions by name.
    functions: Vec<(String, u64)>,
    /// Its variables: name, address, bytes.
    globals: Vec<(String, u64, u64)>,
    /// Where those are.
    variables: Option<Variables>,
}

/// Variables by name, address and bytes, and the memory that they are in.
type Placed = (Vec<(String, u64, u64)>, Option<Variables>);

/// A kernel of a loaded module.
pub(crate) struct Function {
    /// The device of its context.
    pub(crate) device: u32,
    /// The kernel.
    pub(crate) kernel: Arc<Kernel>,
    /// Addresses of the module's variables.
    pub(crate) globals: Arc<[u64]>,
    /// The module's `.version`, as the driver's attribute has it: 10 × major + minor.
    pub(crate) ptx_version: i32,
    /// Dynamic shared memory that a launch may ask for, bytes.
    pub(crate) dynamic_shared: u32,
    /// Its name, for `cuFuncGetName`.
    pub(crate) name: CString,
}

/// Modules and functions of a machine.
pub(crate) struct Modules {
    loaded: Table<Module>,
    /// Functions of all loaded modules.
    pub(crate) functions: Table<Function>,
    /// Texts whose entries take the place of those of the same name; the newest last.
    replacements: Vec<Arc<Translation>>,
}

/// Why a module was not loaded: the code, and what goes into the JIT's error log.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    /// The driver's code.
    pub(crate) code: Code,
    /// For a human.
    pub(crate) message: String,
}

impl Modules {
    /// Nothing loaded.
    pub(crate) fn new(slot: usize) -> Modules {
        Modules {
            loaded: Table::new(Kind::Module, slot),
            functions: Table::new(Kind::Function, slot),
            replacements: Vec::new(),
        }
    }

    /// How many modules are loaded.
    pub(crate) fn len(&self) -> usize {
        self.loaded.len()
    }

    /// `cuModuleGetFunction`.
    pub(crate) fn function(&self, module: u64, name: &str) -> Status<u64> {
        let functions = &self.loaded.get(module)?.functions;
        functions
            .iter()
            .find(|(found, _)| found == name)
            .map(|&(_, value)| value)
            .ok_or(Code::NOT_FOUND)
    }

    /// All functions of a module.
    pub(crate) fn functions_of(&self, module: u64) -> Status<Vec<u64>> {
        let functions = &self.loaded.get(module)?.functions;
        Ok(functions.iter().map(|&(_, value)| value).collect())
    }

    /// The module that a function is of.
    pub(crate) fn module_of(&self, function: u64) -> Status<u64> {
        let has = |module: &Module| module.functions.iter().any(|&(_, value)| value == function);
        let mut loaded = self.loaded.iter();
        let found = loaded.find(|(_, module)| has(module));
        found.map(|(value, _)| value).ok_or(Code::INVALID_HANDLE)
    }

    /// The kernels that run where these were loaded.
    fn in_place_of(&self, loaded: &[Arc<Kernel>]) -> Result<Vec<Arc<Kernel>>, String> {
        let newest = |kernel: &Arc<Kernel>| {
            let texts = self.replacements.iter().rev();
            match texts.flat_map(|text| replacement(text, kernel)).next() {
                Some(other) => other,
                None => Ok(kernel.clone()),
            }
        };
        loaded.iter().map(newest).collect()
    }

    /// `cuModuleGetGlobal`: address and bytes.
    pub(crate) fn global(&self, module: u64, name: &str) -> Status<(u64, u64)> {
        let globals = &self.loaded.get(module)?.globals;
        let found = globals
            .iter()
            .find(|(found, ..)| found == name)
            .ok_or(Code::NOT_FOUND)?;
        Ok((found.1, found.2))
    }
}

/// The line of a directive, and what follows it there.
fn directive<'a>(text: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    lines.find_map(|(number, line)| Some((number, line.strip_prefix(name)?)))
}

/// The `.version` of a text, read without parsing the rest: a newer text may hold what the parser does not know.
fn version(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = directive(text, ".version")?;
    let (major, minor) = rest.trim().split_once('.')?;
    let digits = |part: &str| {
        part.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    };
    Some((digits(major)?, digits(minor)?))
}

/// The kernel of a text that takes the place of another, if it has one of its name.
fn replacement(text: &Translation, kernel: &Kernel) -> Option<Result<Arc<Kernel>, String>> {
    let other = text
        .kernels
        .iter()
        .find(|other| other.name() == kernel.name())?;
    if other.params() == kernel.params() {
        return Some(Ok(other.clone()));
    }
    Some(Err(format!(
        "entry `{}` cannot be replaced: its parameters are of {}, those of the entry in its place of {}",
        kernel.name(),
        parameters(kernel),
        parameters(other)
    )))
}

/// What takes the place of a function's kernel.
pub(crate) struct Replacement {
    kernel: Arc<Kernel>,
    globals: Arc<[u64]>,
}

impl Replacement {
    fn new(kernel: Arc<Kernel>) -> Replacement {
        let globals = no_addresses(&kernel);
        Replacement { kernel, globals }
    }

    /// A launch as it was, of this kernel.
    pub(crate) fn launch(&self, launch: &Launch) -> Launch {
        Launch {
            kernel: self.kernel.clone(),
            globals: self.globals.clone(),
            ..launch.clone()
        }
    }
}

/// What a launch of a replacement has for the addresses of its text's variables, which it does not use.
fn no_addresses(kernel: &Kernel) -> Arc<[u64]> {
    vec![0; kernel.globals()].into()
}

/// A kernel's parameters for a human.
fn parameters(kernel: &Kernel) -> String {
    let sizes: Vec<String> = kernel
        .params()
        .iter()
        .map(|param| param.size.to_string())
        .collect();
    if sizes.is_empty() {
        "none".to_owned()
    } else {
        format!("{} bytes", sizes.join(", "))
    }
}

impl State {
    /// Translates a text and checks it against the profile.
    fn compile(&self, text: &str) -> Result<Arc<Translation>, Refused> {
        let refuse = |code, message| Err(Refused { code, message });
        let line = |name| directive(text, name).map_or(1, |(line, _)| line);
        let most = self.profile.ptx_version;
        if let Some(found) = version(text)
            && found > most
        {
            let message = format!(
                "line {}: PTX .version {}.{}: this driver takes up to {}.{}",
                line(".version"),
                found.0,
                found.1,
                most.0,
                most.1
            );
            return refuse(Code::UNSUPPORTED_PTX_VERSION, message);
        }
        let translation = match Translation::of(text) {
            Ok(translation) => translation,
            Err(message) => return refuse(Code::INVALID_PTX, message),
        };
        let ptx = &translation.ptx;
        let (major, minor) = self.profile.compute_capability;
        let own = major * 10 + minor;
        // `sm_90a` code runs on 9.0 only; `sm_100f` code within its family; plain code on anything newer.
        let runs = match ptx.target_suffix {
            Some('a') => ptx.target == own,
            Some(_) => ptx.target / 10 == own / 10 && ptx.target <= own,
            None => ptx.target <= own,
        };
        if !runs {
            let suffix = ptx.target_suffix.map(String::from).unwrap_or_default();
            let message = format!(
                "line {}: PTX .target sm_{}{suffix} does not run on sm_{own}",
                line(".target"),
                ptx.target
            );
            return refuse(Code::NO_BINARY_FOR_GPU, message);
        }
        Ok(translation)
    }

    /// Whether devices would load a text; if not, why.
    pub(crate) fn accepts_text(&self, text: &str) -> Result<(), String> {
        let compiled = self.compile(text);
        compiled.map(|_| ()).map_err(|refused| refused.message)
    }

    /// Lets the entries of a text take the place of those of the same name in all texts, loaded ones too; gives their names.
    pub(crate) fn replace_entries(&mut self, text: &str) -> Result<Vec<String>, String> {
        let translation = self.compile(text).map_err(|refused| refused.message)?;
        // Variables get memory when a module is loaded, and this text is not: none of its entries may use one.
        let mut used = translation.kernels.iter().flat_map(|kernel| {
            let globals = &translation.ptx.globals;
            let used = kernel.used_globals();
            used.filter_map(move |global| Some((kernel.name(), globals.get(global)?)))
        });
        if let Some((entry, global)) = used.next() {
            return Err(format!(
                "line {}: variable `{}`, which `{entry}` uses: entries that replace others have no variables of their own",
                global.line, global.name
            ));
        }
        drop(used);
        let mut changed = BTreeMap::new();
        for (value, function) in self.modules.functions.iter() {
            if let Some(kernel) = replacement(&translation, &function.kernel) {
                changed.insert(value, Replacement::new(kernel?));
            }
        }
        for (function, launch) in self.graphs.launches() {
            if let Some(new) = changed.get(&function) {
                let fits = new.launch(launch).validate();
                fits.map_err(|error| format!("a graph has launches that do not fit: {error}"))?;
            }
        }
        self.graphs.replace_kernels(&changed);
        for (value, Replacement { kernel, globals }) in changed {
            if let Ok(function) = self.modules.functions.get_mut(value) {
                function.dynamic_shared = SHARED_LIMIT.saturating_sub(kernel.static_shared_bytes());
                function.globals = globals;
                function.kernel = kernel;
            }
        }
        let names = translation.kernels.iter();
        let names = names.map(|kernel| kernel.name().to_owned()).collect();
        self.modules.replacements.push(translation);
        Ok(names)
    }

    /// `cuModuleLoadDataEx` of a PTX text into a device's context.
    pub(crate) fn load_module(&mut self, device: u32, text: &str) -> Result<u64, Refused> {
        let translation = self.compile(text)?;
        let kernels = self
            .modules
            .in_place_of(&translation.kernels)
            .map_err(|message| Refused {
                code: Code::INVALID_PTX,
                message,
            })?;
        let ptx = &translation.ptx;
        let (globals, variables) = self.place_globals(device, ptx).map_err(|code| Refused {
            code,
            message: format!("no memory for the module's variables on device {device}"),
        })?;
        let addresses: Arc<[u64]> = globals.iter().map(|global| global.1).collect();
        let ptx_version = i32::from(ptx.version.0) * 10 + i32::from(ptx.version.1);
        let mut functions = Vec::new();
        for (kernel, own) in kernels.into_iter().zip(&translation.kernels) {
            let name = kernel.name().to_owned();
            // An entry in the place of another knows none of the module's variables.
            let globals = match Arc::ptr_eq(&kernel, own) {
                true => addresses.clone(),
                false => no_addresses(&kernel),
            };
            let function = Function {
                device,
                ptx_version,
                dynamic_shared: SHARED_LIMIT.saturating_sub(kernel.static_shared_bytes()),
                kernel,
                globals,
                name: CString::new(name.clone()).unwrap_or_default(),
            };
            functions.push((name, self.modules.functions.insert(function)));
        }
        Ok(self.modules.loaded.insert(Module {
            device,
            functions,
            globals,
            variables,
        }))
    }

    /// Gives a module's variables memory and their first values.
    fn place_globals(&mut self, device: u32, ptx: &Ptx) -> Status<Placed> {
        let wanted = ptx.globals.iter();
        let wanted: Vec<(u64, u64)> = wanted
            .map(|global| (global.size.max(1), global.align.into()))
            .collect();
        let Some((variables, addresses)) = self.memory.place(device, &wanted)? else {
            return Ok((Vec::new(), None));
        };
        let named = ptx.globals.iter().zip(addresses);
        let globals: Vec<(String, u64, u64)> = named
            .map(|(global, base)| (global.name.clone(), base, global.size))
            .collect();
        for (global, &(_, base, _)) in ptx.globals.iter().zip(&globals) {
            let mut bytes = global.init.clone();
            bytes.resize(global.size as usize, 0);
            for relocation in &global.relocations {
                let target = globals.get(relocation.target).map_or(0, |target| target.1);
                let value = target.wrapping_add_signed(relocation.addend).to_le_bytes();
                if let Some(word) =
                    bytes.get_mut(relocation.offset as usize..relocation.offset as usize + 8)
                {
                    word.copy_from_slice(&value);
                }
            }
            self.memory.initialise(base, &bytes);
            if global.space == GlobalSpace::Const {
                self.memory.map.set_access(base, device, true, false);
            }
        }
        Ok((globals, Some(variables)))
    }

    /// `cuModuleUnload`.
    pub(crate) fn unload_module(&mut self, module: u64) -> Status {
        let module = self.modules.loaded.remove(module)?;
        for &(_, function) in &module.functions {
            self.modules.functions.remove(function)?;
        }
        if let Some(variables) = &module.variables
            && let Err(code) = self.memory.free_variables(variables)
        {
            log::warn!("emulator: freeing a module's variables failed with {code:?}");
        }
        Ok(())
    }

    /// Unloads all modules of a device's context; gives how many there were.
    pub(crate) fn unload_all(&mut self, device: u32) -> usize {
        let of = |(_, module): &(u64, &Module)| module.device == device;
        let mine: Vec<u64> = self
            .modules
            .loaded
            .iter()
            .filter(of)
            .map(|(value, _)| value)
            .collect();
        mine.into_iter()
            .filter(|&module| self.unload_module(module).is_ok())
            .count()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_of_a_text_is_read_from_its_directive() {
        assert_eq!(
            super::version("//\n// by nvcc\n.version 9.0\n.target sm_80\n"),
            Some((9, 0))
        );
        assert_eq!(super::version("  .version 8.12 // x"), Some((8, 12)));
        assert_eq!(super::version(".target sm_80"), None);
    }
}
