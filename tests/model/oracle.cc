#include "tests/model/oracle.h"

#include <algorithm>

namespace thimble {
namespace {

using Word = std::uint64_t;

volatile Word& WordAt(Address address) { return *static_cast<volatile Word*>(ToPointer(address)); }

// Different for every block and every place in it.
Word MarkFor(const Held& held, Bytes at) {
  Word x = held.serial * 0x9e3779b97f4a7c15 + at * 0xbf58476d1ce4e5b9 + 1;
  x ^= x >> 31;
  return x * 0x94d049bb133111eb;
}

// Calls visit(offset) for every place of a mark, until it returns false.
template <typename Visit>
void ForEachMark(Address address, Bytes bytes, Visit visit) {
  if (!visit(Bytes{0})) return;
  for (Bytes at = RoundUp(address.value() + 1, kPage) - address.value(); at < bytes; at += kPage) {
    if (!visit(at - sizeof(Word)) || !visit(at)) return;
  }
  visit(bytes - sizeof(Word));
}

bool Overlap(const FileRange& a, const FileRange& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

bool SameRanges(const std::vector<FileRange>& a, const std::vector<FileRange>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const FileRange& x, const FileRange& y) {
                      return x.offset == y.offset && x.bytes == y.bytes;
                    });
}

}  // namespace

testing::AssertionResult Oracle::Add(Address address, const Held& held) {
  ForEachMark(address, held.bytes, [&](Bytes at) {
    WordAt(address + at) = MarkFor(held, at);
    return true;
  });
  return Adopt(address, held);
}

testing::AssertionResult Oracle::Adopt(Address address, const Held& held) {
  const auto next = held_.lower_bound(address);
  bool overlaps = next != held_.end() && next->first < address + held.bytes;
  if (next != held_.begin()) {
    const auto& [previous, entry] = *std::prev(next);
    overlaps = overlaps || previous + entry.held.bytes > address;
  }
  if (overlaps) {
    return testing::AssertionFailure() << "block " << held.serial << " overlaps one that is held";
  }
  held_.emplace(address, Entry{held, order_.size()});
  order_.push_back(address);
  in_use_ += held.counted;
  return CheckContents(address);
}

testing::AssertionResult Oracle::Remove(Address address) {
  const testing::AssertionResult intact = CheckContents(address);
  const auto it = held_.find(address);
  in_use_ -= it->second.held.counted;
  const std::size_t position = it->second.position;
  order_[position] = order_.back();
  held_.at(order_[position]).position = position;
  order_.pop_back();
  held_.erase(address);
  return intact;
}

testing::AssertionResult Oracle::CheckContents(Address address) const {
  const Held& held = at(address);
  testing::AssertionResult result = testing::AssertionSuccess();
  ForEachMark(address, held.bytes, [&](Bytes at) {
    const Word found = WordAt(address + at);
    if (found == MarkFor(held, at)) return true;
    result = testing::AssertionFailure() << "block " << held.serial << " of " << held.bytes
                                         << " bytes lost byte " << at << ": found " << found;
    return false;
  });
  return result;
}

testing::AssertionResult Oracle::CheckAllContents() const {
  for (const Address address : order_) {
    if (const auto result = CheckContents(address); !result) return result;
  }
  return testing::AssertionSuccess();
}

std::vector<FileRange> Oracle::PhysicalOf(Address address, Bytes bytes) const {
  const auto ranges = host_.TranslateRange(address, bytes);
  return ranges.ok() ? *ranges : std::vector<FileRange>{};
}

testing::AssertionResult Oracle::CheckPhysical() const {
  std::vector<FileRange> all;
  for (const auto& [address, entry] : held_) {
    const std::vector<FileRange> ranges = PhysicalOf(address, entry.held.bytes);
    if (ranges.empty()) {
      return testing::AssertionFailure() << "block " << entry.held.serial << " is not mapped";
    }
    all.insert(all.end(), ranges.begin(), ranges.end());
  }
  std::sort(all.begin(), all.end(),
            [](const FileRange& a, const FileRange& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!Overlap(all[i - 1], all[i])) continue;
    return testing::AssertionFailure() << "byte " << all[i].offset << " is behind two blocks";
  }
  return testing::AssertionSuccess();
}

void Oracle::StillRunning(Address address, StreamId stream) {
  const Bytes bytes = at(address).bytes;
  ghosts_.push_back({address, bytes, stream, PhysicalOf(address, bytes)});
}

void Oracle::Finished(StreamId stream) {
  const auto is_done = [&](const Ghost& ghost) { return ghost.stream == stream; };
  ghosts_.erase(std::remove_if(ghosts_.begin(), ghosts_.end(), is_done), ghosts_.end());
}

testing::AssertionResult Oracle::CheckReuse(Address address, StreamId stream) const {
  if (ghosts_.empty()) return testing::AssertionSuccess();
  for (const FileRange& mine : PhysicalOf(address, at(address).bytes)) {
    for (const Ghost& ghost : ghosts_) {
      if (ghost.stream == stream) continue;
      for (const FileRange& theirs : ghost.physical) {
        if (!Overlap(mine, theirs)) continue;
        return testing::AssertionFailure()
               << "byte " << std::max(mine.offset, theirs.offset) << " was given to stream "
               << static_cast<std::uint64_t>(stream) << " while stream "
               << static_cast<std::uint64_t>(ghost.stream) << " may still use it";
      }
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Oracle::CheckStillMapped() const {
  for (const Ghost& ghost : ghosts_) {
    if (SameRanges(PhysicalOf(ghost.address, ghost.bytes), ghost.physical)) continue;
    return testing::AssertionFailure()
           << "addresses that stream " << static_cast<std::uint64_t>(ghost.stream)
           << " may still use were unmapped or mapped to other bytes";
  }
  return testing::AssertionSuccess();
}

}  // namespace thimble
