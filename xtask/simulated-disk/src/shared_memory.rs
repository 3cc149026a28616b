//! Shared memory and locks of one database, as processes on one machine share them.

/// Number of lock slots of a write-ahead log's index.
const SLOTS: usize = 8;

/// Levels of SQLite's lock on a database file, in ascending order.
pub(crate) const SHARED: i32 = 1;
pub(crate) const RESERVED: i32 = 2;
pub(crate) const PENDING: i32 = 3;
pub(crate) const EXCLUSIVE: i32 = 4;

/// Another connection has a lock that excludes the requested one.
#[derive(Debug)]
pub(crate) struct Busy;

/// What one connection has locked.
#[derive(Debug, Default, Clone, Copy)]
struct Holder {
    id: u64,
    level: i32,
    mapped: bool,
    shared: [bool; SLOTS],
    exclusive: [bool; SLOTS],
}

/// The locks on one file, and the regions of its shared memory.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    holders: Vec<Holder>,
    /// Regions that SQLite reads and writes by pointer. A region is dropped only when no connection has it mapped.
    regions: Vec<Box<[u64]>>,
}

impl Sharing {
    fn holder(&mut self, id: u64) -> &mut Holder {
        let index = match self.holders.iter().position(|holder| holder.id == id) {
            Some(index) => index,
            None => {
                self.holders.push(Holder {
                    id,
                    ..Holder::default()
                });
                self.holders.len() - 1
            }
        };
        &mut self.holders[index]
    }

    fn others(&self, id: u64) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |holder| holder.id != id)
    }

    fn highest_of_others(&self, id: u64) -> i32 {
        self.others(id).map(|other| other.level).max().unwrap_or(0)
    }

    pub(crate) fn lock(&mut self, id: u64, level: i32) -> Result<(), Busy> {
        let others = self.highest_of_others(id);
        let own = self.holder(id);
        if own.level >= level {
            return Ok(());
        }
        match level {
            SHARED if others >= PENDING => return Err(Busy),
            RESERVED if others >= RESERVED => return Err(Busy),
            PENDING | EXCLUSIVE if others >= RESERVED => return Err(Busy),
            EXCLUSIVE if others >= SHARED => {
                // New readers have to wait until this connection has its turn.
                own.level = PENDING;
                return Err(Busy);
            }
            _ => {}
        }
        own.level = level;
        Ok(())
    }

    pub(crate) fn unlock(&mut self, id: u64, level: i32) {
        let own = self.holder(id);
        own.level = own.level.min(level);
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.holders.iter().any(|holder| holder.level >= RESERVED)
    }

    pub(crate) fn lock_slots(
        &mut self,
        id: u64,
        first: usize,
        count: usize,
        exclusive: bool,
    ) -> Result<(), Busy> {
        let slots = first..(first + count).min(SLOTS);
        let taken = self.others(id).any(|other| {
            slots
                .clone()
                .any(|slot| other.exclusive[slot] || (exclusive && other.shared[slot]))
        });
        if taken {
            return Err(Busy);
        }
        let own = self.holder(id);
        for slot in slots {
            match exclusive {
                true => own.exclusive[slot] = true,
                false => own.shared[slot] = true,
            }
        }
        Ok(())
    }

    pub(crate) fn unlock_slots(&mut self, id: u64, first: usize, count: usize) {
        let own = self.holder(id);
        for slot in first..(first + count).min(SLOTS) {
            own.exclusive[slot] = false;
            own.shared[slot] = false;
        }
    }

    /// Returns the address of a region. `None` if the region does not exist and `extend` is false.
    pub(crate) fn map(
        &mut self,
        id: u64,
        region: usize,
        size: usize,
        extend: bool,
    ) -> Option<*mut u8> {
        self.holder(id).mapped = true;
        while extend && self.regions.len() <= region {
            self.regions.push(vec![0; size.div_ceil(8)].into());
        }
        self.regions
            .get_mut(region)
            .map(|region| region.as_mut_ptr().cast())
    }

    /// Ends the use of shared memory. The last connection leaves empty memory, as the next process finds it.
    pub(crate) fn unmap(&mut self, id: u64) {
        let own = self.holder(id);
        (own.mapped, own.shared, own.exclusive) = (false, [false; SLOTS], [false; SLOTS]);
        if self.holders.iter().all(|holder| !holder.mapped) {
            self.regions.clear();
        }
    }

    /// Ends all locks of a connection.
    pub(crate) fn close(&mut self, id: u64) {
        self.unmap(id);
        self.holders.retain(|holder| holder.id != id);
    }
}
