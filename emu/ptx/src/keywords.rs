//! The words of the instruction language: opcodes, modifiers, types and special registers.

/// Makes an enum whose variants have PTX spellings, with the way there and back.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the PTX word of the same name")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// The word as PTX spells it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The variant that PTX spells so.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// The part of an instruction before its first dot.
    Opcode {
        Abs = "abs", Activemask = "activemask", Add = "add", Addc = "addc", And = "and", Atom = "atom", Bar = "bar",
        Barrier = "barrier", Bfe = "bfe", Bfi = "bfi", Bfind = "bfind", Bra = "bra", Brev = "brev", Brkpt = "brkpt",
        Clz = "clz", Cnot = "cnot", Copysign = "copysign", Cvt = "cvt", Cvta = "cvta", Discard = "discard", Div = "div",
        Elect = "elect", Ex2 = "ex2", Exit = "exit", Fence = "fence", Fma = "fma", Fns = "fns",
        Griddepcontrol = "griddepcontrol", Isspacep = "isspacep", Ld = "ld", Lg2 = "lg2", Lop3 = "lop3", Mad = "mad",
        Mad24 = "mad24", Madc = "madc", Match = "match", Max = "max", Membar = "membar", Min = "min", Mov = "mov",
        Mul = "mul", Mul24 = "mul24", Nanosleep = "nanosleep", Neg = "neg", Not = "not", Or = "or", Popc = "popc",
        Prefetch = "prefetch", Prmt = "prmt", Rcp = "rcp", Red = "red", Redux = "redux", Rem = "rem", Ret = "ret",
        Rsqrt = "rsqrt", Sad = "sad", Selp = "selp", Set = "set", Setp = "setp", Shf = "shf", Shfl = "shfl",
        Shl = "shl", Shr = "shr", Sin = "sin", Cos = "cos", Slct = "slct", Sqrt = "sqrt", St = "st", Sub = "sub",
        Subc = "subc", Tanh = "tanh", Testp = "testp", Trap = "trap", Vote = "vote", Xor = "xor",
    }
}

words! {
    /// A type of registers, memory or arithmetic.
    Type {
        Pred = "pred", B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128", U8 = "u8", U16 = "u16",
        U32 = "u32", U64 = "u64", S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64", F16 = "f16", F16x2 = "f16x2",
        Bf16 = "bf16", Bf16x2 = "bf16x2", F32 = "f32", F64 = "f64",
    }
}

impl Type {
    /// Its size in bytes; 0 for predicates.
    pub fn bytes(self) -> u32 {
        use Type::*;
        match self {
            Pred => 0,
            B8 | U8 | S8 => 1,
            B16 | U16 | S16 | F16 | Bf16 => 2,
            B32 | U32 | S32 | F32 | F16x2 | Bf16x2 => 4,
            B64 | U64 | S64 | F64 => 8,
            B128 => 16,
        }
    }

    /// Whether it is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether arithmetic on it is floating point.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64
        )
    }
}

words! {
    /// A dotted word behind an opcode that is not a type.
    Modifier {
        Acq = "acquire", AcqRel = "acq_rel", Release = "release", Relaxed = "relaxed", Weak = "weak", Sc = "sc",
        Volatile = "volatile", Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", Gl = "gl",
        Global = "global", Shared = "shared", SharedCta = "shared::cta", Local = "local", Const = "const",
        Param = "param", ParamEntry = "param::entry", To = "to", Nc = "nc", Ca = "ca", Cg = "cg", Cs = "cs",
        Cv = "cv", Lu = "lu", Wb = "wb", Wt = "wt", L1NoAllocate = "L1::no_allocate", L1EvictFirst = "L1::evict_first",
        L1EvictLast = "L1::evict_last", L1EvictNormal = "L1::evict_normal", L1EvictUnchanged = "L1::evict_unchanged",
        L2Prefetch64 = "L2::64B", L2Prefetch128 = "L2::128B", L2Prefetch256 = "L2::256B", L1 = "L1", L2 = "L2",
        V2 = "v2", V4 = "v4", V8 = "v8", Lo = "lo", Hi = "hi", Wide = "wide", Cc = "cc", Sat = "sat", Ftz = "ftz",
        Approx = "approx", Full = "full", Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rni = "rni",
        Rzi = "rzi", Rmi = "rmi", Rpi = "rpi", Relu = "relu", Nan = "NaN", XorSignAbs = "xorsign_abs", Eq = "eq",
        Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", Ls = "ls", Hs = "hs", Equ = "equ", Neu = "neu",
        Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu", Num = "num", IsNan = "nan", And = "and", Or = "or",
        Xor = "xor", Add = "add", Inc = "inc", Dec = "dec", Min = "min", Max = "max", Exch = "exch", Cas = "cas",
        Noftz = "noftz", Sync = "sync", Arrive = "arrive", Red = "red", Popc = "popc", Aligned = "aligned",
        Warp = "warp", Up = "up", Down = "down", Bfly = "bfly", Idx = "idx", All = "all", Any = "any", Uni = "uni",
        Ballot = "ballot", Shiftamt = "shiftamt", L = "l", R = "r", Wrap = "wrap", Clamp = "clamp", F4e = "f4e",
        B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16", Finite = "finite", Infinite = "infinite",
        Number = "number", Notanumber = "notanumber", Normal = "normal", Subnormal = "subnormal", Wait = "wait",
        LaunchDependents = "launch_dependents",
    }
}

words! {
    /// A read-only register that the machine fills.
    SpecialRegister {
        TidX = "%tid.x", TidY = "%tid.y", TidZ = "%tid.z", NtidX = "%ntid.x", NtidY = "%ntid.y", NtidZ = "%ntid.z",
        CtaidX = "%ctaid.x", CtaidY = "%ctaid.y", CtaidZ = "%ctaid.z", NctaidX = "%nctaid.x", NctaidY = "%nctaid.y",
        NctaidZ = "%nctaid.z", Laneid = "%laneid", Warpid = "%warpid", Nwarpid = "%nwarpid", Smid = "%smid",
        Nsmid = "%nsmid", Gridid = "%gridid", LanemaskEq = "%lanemask_eq", LanemaskLe = "%lanemask_le",
        LanemaskLt = "%lanemask_lt", LanemaskGe = "%lanemask_ge", LanemaskGt = "%lanemask_gt", Clock = "%clock",
        ClockHi = "%clock_hi", Clock64 = "%clock64", Globaltimer = "%globaltimer",
        GlobaltimerLo = "%globaltimer_lo", GlobaltimerHi = "%globaltimer_hi",
        DynamicSmemSize = "%dynamic_smem_size", TotalSmemSize = "%total_smem_size",
    }
}
