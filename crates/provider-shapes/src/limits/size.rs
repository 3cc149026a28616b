//! Size of messages in a request.

use std::io::Write;

use memory_model::Message;

/// Bytes that a shape adds to a part of a message, at most.
pub(super) const AROUND_PART: u64 = 200;

/// Returns the size of messages in a request, in bytes, at most a little too large.
pub fn bytes(messages: &[Message]) -> u64 {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len() as u64);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    for part in messages.iter().flat_map(|message| &message.parts) {
        // Writing into a counter does not fail, and a part is always JSON.
        let _ = serde_json::to_writer(&mut count, part);
        count.0 = count.0.saturating_add(AROUND_PART);
    }
    count.0
}
