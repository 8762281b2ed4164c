//! PTX texts and what they were translated to. Every rank of a program loads the same few texts, and tests load them on
//! one machine after another, so a text is translated once a process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use slabfence_emu_exec::Kernel;
use slabfence_emu_ptx::Module as Ptx;

/// Texts that are remembered; the oldest goes first.
const REMEMBERED: usize = 16;

/// A text in executable form, independent of the device that it will run on.
pub(crate) struct Translation {
    text: String,
    /// The checked module.
    pub(crate) ptx: Ptx,
    /// Its kernels, in the order of its entries.
    pub(crate) kernels: Vec<Arc<Kernel>>,
}

static RECENT: Mutex<VecDeque<Arc<Translation>>> = Mutex::new(VecDeque::new());

impl Translation {
    /// Translates a text, or finds it translated. The error says where the text is wrong.
    pub(crate) fn of(text: &str) -> Result<Arc<Translation>, String> {
        // Held while translating: ranks that load the same text at the same time wait for the first.
        let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = recent.iter().find(|found| found.text == text) {
            return Ok(found.clone());
        }
        let translation = Arc::new(Self::translate(text)?);
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(translation.clone());
        Ok(translation)
    }

    fn translate(text: &str) -> Result<Translation, String> {
        let ptx = slabfence_emu_ptx::parse(text).map_err(|error| error.to_string())?;
        let mut kernels = Vec::with_capacity(ptx.entries.len());
        for entry in &ptx.entries {
            let kernel = Kernel::compile(&ptx, &entry.name)
                .map_err(|error| format!("`{}`: {error}", entry.name))?;
            kernels.push(Arc::new(kernel));
        }
        Ok(Translation {
            text: text.to_owned(),
            ptx,
            kernels,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";

    #[test]
    fn a_text_is_translated_once_and_another_text_apart() {
        let text = format!("{HEAD}.visible .entry once_a() {{ ret; }}\n");
        let first = Translation::of(&text).unwrap();
        assert!(Arc::ptr_eq(&first, &Translation::of(&text).unwrap()));
        let other = format!("{HEAD}.visible .entry once_b() {{ ret; }}\n");
        assert_eq!(Translation::of(&other).unwrap().kernels[0].name(), "once_b");
        assert_eq!(first.kernels[0].name(), "once_a");
    }

    #[test]
    fn a_wrong_text_is_refused_every_time() {
        let text = format!("{HEAD}.visible .entry wrong() {{ frobnicate; }}\n");
        let first = Translation::of(&text).err().unwrap();
        assert!(first.contains("frobnicate"), "{first}");
        assert_eq!(Translation::of(&text).err(), Some(first));
    }
}
