#include "tests/simgpu/driver/races.h"

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

// A sum over some words of host memory: whoever uses a buffer anew changes most of them.
std::uint64_t SumOf(Address address, Bytes bytes) {
  constexpr Bytes kSamples = 1024;
  const Bytes words = bytes / 8;
  const Bytes step = std::max<Bytes>(words / kSamples, 1);
  std::uint64_t sum = bytes;
  for (Bytes word = 0; word < words; word += step) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const char*>(address) + word * 8, 8);
    sum = (sum ^ value) * 0x9e3779b97f4a7c15;
  }
  return sum;
}

std::string BytesAt(Bytes bytes, Address address) {
  return std::to_string(bytes) + " bytes at " + Hex(address);
}

}  // namespace

Races::Races(const Options& options, Memory& memory, HostMemory& host_memory, Log& log)
    : watched_(options.has_races()), memory_(memory), host_memory_(host_memory), log_(log) {}

int Races::AddStream(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return watched_ ? order_.AddStream(device) : -1;
}

Moment Races::At(int stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return watched_ ? order_.At(stream) : nullptr;
}

void Races::Join(int stream, const Moment& moment) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (watched_) order_.Join(stream, moment);
}

void Races::Learn(const Moment& moment) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  order_.Learn(moment);
  CheckWatched();
}

Moment Races::AtAll(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return watched_ ? order_.AtAll(device) : nullptr;
}

std::string Races::Describe(const Use& use) const {
  return *use.work + " on stream " + std::to_string(use.stream) + " of device " +
         std::to_string(order_.DeviceOf(use.stream)) + " (work " + std::to_string(use.sequence) +
         " there, with " + BytesAt(use.bytes, use.block) + ")";
}

void Races::DropKnown(std::vector<Use>* uses) const {
  const auto known = [this](const Use& use) { return order_.IsKnown(use); };
  uses->erase(std::remove_if(uses->begin(), uses->end(), known), uses->end());
}

void Races::CheckKnown(std::vector<Use>* uses, const std::string& what) {
  DropKnown(uses);
  for (const Use& use : *uses) {
    log_.WriteIllegal(what + " while " + Describe(use) +
                      " may still use it: nobody waited for that");
  }
  uses->clear();
}

Races::Found Races::BlockAt(Address address) {
  for (Blocks* const blocks : {&blocks_, &areas_}) {
    const auto found = blocks->Holding(address);
    if (found != blocks->end()) return {found->first, found->second.bytes, &found->second.value};
  }
  Segment segment;
  HostBlock host_block;
  Found found;
  const bool exists = memory_.Find(address, &segment, &found.begin, &found.bytes) ||
                      host_memory_.Find(address, &host_block, &found.begin, &found.bytes);
  if (!exists || areas_.Overlaps(found.begin, found.bytes)) return {};
  areas_.Insert(found.begin, found.bytes, Block());
  found.block = &areas_.Exactly(found.begin)->second.value;
  return found;
}

void Races::Touch(const Operand& operand, Use use) {
  for (Address at = operand.address;;) {
    const Found found = BlockAt(at);
    if (found.block == nullptr) return;
    use.block = found.begin;
    use.bytes = found.bytes;
    std::vector<Use>& inherited = found.block->inherited;
    DropKnown(&inherited);
    for (auto former = inherited.begin(); former != inherited.end();) {
      if (order_.IsBefore(*former, use.stream)) {
        ++former;
        continue;
      }
      log_.WriteIllegal("race: " + Describe(use) + " begins while " + Describe(*former) +
                        " may still run: its block was freed, and its memory handed on");
      former = inherited.erase(former);
    }
    AddUse(use, &found.block->uses);
    at = found.begin + found.bytes;
    if (at - operand.address >= operand.bytes) return;
  }
}

Sequence Races::Submit(int stream, const std::string& work, const std::vector<Operand>& operands) {
  if (!watched_) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  Use use;
  use.stream = stream;
  use.sequence = order_.Submit(stream);
  use.work = &*names_.insert(work).first;
  for (const Operand& operand : operands) Touch(operand, use);
  return use.sequence;
}

void Races::Watch(int stream, Sequence sequence, const std::vector<Operand>& operands) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Operand& operand : operands) {
    HostBlock block;
    Address begin = 0;
    Bytes bytes = 0;
    if (!host_memory_.Find(operand.address, &block, &begin, &bytes)) continue;
    const Found area = BlockAt(operand.address);
    if (area.block == nullptr) continue;
    const auto used = std::find_if(
        area.block->uses.begin(), area.block->uses.end(),
        [&](const Use& use) { return use.stream == stream && use.sequence == sequence; });
    if (used == area.block->uses.end()) continue;
    EndWatches(operand, *used);
    copies_.push_back({*used, operand.address, operand.bytes, operand.written,
                       SumOf(operand.address, operand.bytes)});
  }
}

void Races::EndWatches(const Operand& operand, const Use& use) {
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    const bool overlaps = copy->address < operand.address + operand.bytes &&
                          operand.address < copy->address + copy->bytes;
    if (!overlaps) {
      ++copy;
      continue;
    }
    if ((copy->written || operand.written) && !order_.IsBefore(copy->use, use.stream)) {
      log_.WriteIllegal("race: " + Describe(use) + " uses " +
                        BytesAt(operand.bytes, operand.address) + " of host memory while " +
                        Describe(copy->use) + " may still use them");
    }
    copy = copies_.erase(copy);
  }
}

void Races::CheckWatched() {
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    if (!order_.IsKnown(copy->use)) {
      ++copy;
      continue;
    }
    if (SumOf(copy->address, copy->bytes) != copy->sum) {
      log_.WriteIllegal("race: the program changed " + BytesAt(copy->bytes, copy->address) +
                        " of host memory before it knew that " + Describe(copy->use) + " was over");
    }
    copy = copies_.erase(copy);
  }
}

void Races::Inherit(Block* block, Address address, Bytes bytes) {
  for (const Use& use : by_address_.Take(address, bytes)) AddUse(use, &block->inherited);
  for (const Piece& piece : memory_.PiecesOf(address, bytes)) {
    const auto memory = reinterpret_cast<Address>(piece.host);
    for (const Use& use : by_memory_.Take(memory, piece.bytes)) AddUse(use, &block->inherited);
  }
  DropKnown(&block->inherited);
}

void Races::Begin(Address address, Bytes bytes) {
  if (!watched_ || bytes == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  ++block_count_;
  if (blocks_.Overlaps(address, bytes)) return;  // what an allocator says is not ours to check
  Block block;
  Inherit(&block, address, bytes);
  blocks_.Insert(address, bytes, std::move(block));
}

void Races::End(Address address) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.Exactly(address);
  if (found == blocks_.end()) return;
  std::vector<Use> uses = found->second.value.inherited;
  for (const Use& use : found->second.value.uses) AddUse(use, &uses);
  DropKnown(&uses);
  const Bytes bytes = found->second.bytes;
  blocks_.Erase(found);
  if (uses.empty()) return;
  by_address_.Add(address, bytes, uses);
  for (const Piece& piece : memory_.PiecesOf(address, bytes)) {
    by_memory_.Add(reinterpret_cast<Address>(piece.host), piece.bytes, uses);
  }
}

void Races::Unmapping(Address address, Bytes bytes) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string what = "cuMemUnmap: " + BytesAt(bytes, address) + " are unmapped";
  std::vector<Use> former = by_address_.Take(address, bytes);
  CheckKnown(&former, what);
  for (Blocks* const blocks : {&blocks_, &areas_}) {
    for (auto block = blocks->From(address);
         block != blocks->end() && block->first < address + bytes; ++block) {
      CheckKnown(&block->second.value.uses, what);
    }
  }
  const auto area = areas_.Exactly(address);
  if (area != areas_.end()) areas_.Erase(area);
}

// Memory that comes under a block which is already there: it was away, or grows.
void Races::Mapped(Address address, Bytes bytes) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto block = blocks_.From(address); block != blocks_.end() && block->first < address + bytes;
       ++block) {
    const Address begin = std::max(address, block->first);
    const Address end = std::min(address + bytes, block->first + block->second.bytes);
    Inherit(&block->second.value, begin, end - begin);
  }
}

void Races::Unpinning(Address address) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto area = areas_.Exactly(address);
  if (area == areas_.end()) return;
  CheckKnown(&area->second.value.uses,
             "cuMemHostUnregister: " + BytesAt(area->second.bytes, address) + " are unpinned");
  areas_.Erase(area);
}

void Races::FreeingOn(int stream, Address address) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto area = areas_.Exactly(address);
  if (area == areas_.end()) return;
  for (const Use& use : area->second.value.uses) {
    if (order_.IsKnown(use) || order_.IsBefore(use, stream)) continue;
    log_.WriteIllegal("cuMemFreeAsync: " + BytesAt(area->second.bytes, address) +
                      " are freed on stream " + std::to_string(stream) + " while " + Describe(use) +
                      " may still use them: the streams do not wait for each other");
    break;
  }
  areas_.Erase(area);
}

void Races::Freed(Address address) {
  if (!watched_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto area = areas_.Exactly(address);
  if (area != areas_.end()) areas_.Erase(area);
}

std::size_t Races::block_count() {
  std::lock_guard<std::mutex> lock(mutex_);
  return block_count_;
}

}  // namespace simgpu
