#include "allocator/offline/harmony/server.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/bytes.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"

namespace thimble::harmony {
namespace {

constexpr double kGiBps = static_cast<double>(kGiB);
constexpr double kGpuMemory = 400e9;  // of the 484 GB/s that a GTX 1080 Ti has on paper
constexpr absl::string_view kForms =
    "write 'switch NAME uplink RATE [under NAME]', 'gpu NUMBER switch NAME [link RATE]', 'nvlink "
    "NUMBER NUMBER RATE', 'p2p RATE', 'message RATE', 'gpu_memory RATE', 'host_memory BYTES', "
    "'update_speed NUMBER' or 'duplex full|half'";

class Parser {
 public:
  Parser(absl::string_view name, double memory_bytes)
      : name_(name), server_(PublishedServer(0, memory_bytes)) {
    server_.switches.clear();
  }

  absl::Status ParseLine(absl::string_view line);
  absl::StatusOr<Server> Finish();

 private:
  using Words = std::vector<absl::string_view>;

  absl::Status Error(absl::string_view text, absl::string_view wrong_and_remedy) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", line_, ": ", Quote(text), " ", wrong_and_remedy));
  }
  absl::StatusOr<double> Rate(absl::string_view word) const;
  absl::StatusOr<int> GpuNumber(absl::string_view word) const;
  absl::StatusOr<int> SwitchNamed(absl::string_view word) const;
  absl::Status ParseSwitch(const Words& words);
  absl::Status ParseGpu(const Words& words);
  absl::Status ParseNvlink(const Words& words);
  absl::Status ParseSetting(const Words& words, absl::string_view line);

  const absl::string_view name_;
  int line_ = 0;
  Server server_;
  std::set<int> numbers_;  // of the GPUs described so far
  std::set<std::string> settings_;
};

absl::StatusOr<double> Parser::Rate(absl::string_view word) const {
  const absl::StatusOr<Bytes> bytes = ParseBytes(word);
  if (bytes.ok() && *bytes >= kMiB && *bytes <= 1024 * kTiB) return static_cast<double>(*bytes);
  return Error(word, "is not a bandwidth: write bytes per second from 1MiB, such as 11.5GiB");
}

absl::StatusOr<int> Parser::GpuNumber(absl::string_view word) const {
  int number = 0;
  if (absl::SimpleAtoi(word, &number) && number >= 0 && number < kMaxGpus) return number;
  return Error(word, absl::StrCat("is not a GPU: write a number from 0 to ", kMaxGpus - 1));
}

absl::StatusOr<int> Parser::SwitchNamed(absl::string_view word) const {
  for (std::size_t i = 0; i < server_.switches.size(); ++i) {
    if (server_.switches[i].name == word) return static_cast<int>(i);
  }
  return Error(word, "is not a switch described above: describe it on an earlier line");
}

absl::Status Parser::ParseSwitch(const Words& words) {
  if ((words.size() != 4 && words.size() != 6) || words[2] != "uplink" ||
      (words.size() == 6 && words[4] != "under")) {
    return Error(words[0], "is incomplete: write 'switch NAME uplink RATE [under NAME]'");
  }
  if (SwitchNamed(words[1]).ok())
    return Error(words[1], "is described twice: describe each switch once");
  Switch result;
  result.name = std::string(words[1]);
  THIMBLE_ASSIGN_OR_RETURN(result.uplink_bytes_per_second, Rate(words[3]));
  if (words.size() == 6) {
    THIMBLE_ASSIGN_OR_RETURN(result.above, SwitchNamed(words[5]));
  }
  server_.switches.push_back(result);
  return absl::OkStatus();
}

absl::Status Parser::ParseGpu(const Words& words) {
  if ((words.size() != 4 && words.size() != 6) || words[2] != "switch" ||
      (words.size() == 6 && words[4] != "link")) {
    return Error(words[0], "is incomplete: write 'gpu NUMBER switch NAME [link RATE]'");
  }
  THIMBLE_ASSIGN_OR_RETURN(const int number, GpuNumber(words[1]));
  if (!numbers_.insert(number).second) {
    return Error(words[1], "is described twice: describe each GPU once");
  }
  Gpu gpu;
  THIMBLE_ASSIGN_OR_RETURN(gpu.under, SwitchNamed(words[3]));
  if (words.size() == 6) {
    THIMBLE_ASSIGN_OR_RETURN(gpu.link_bytes_per_second, Rate(words[5]));
  }
  if (number >= server_.gpu_count()) server_.gpus.resize(number + 1);
  server_.gpus[number] = gpu;
  return absl::OkStatus();
}

absl::Status Parser::ParseNvlink(const Words& words) {
  if (words.size() != 4) {
    return Error(words[0], "is incomplete: write 'nvlink NUMBER NUMBER RATE'");
  }
  Nvlink link;
  THIMBLE_ASSIGN_OR_RETURN(link.a, GpuNumber(words[1]));
  THIMBLE_ASSIGN_OR_RETURN(link.b, GpuNumber(words[2]));
  THIMBLE_ASSIGN_OR_RETURN(link.bytes_per_second, Rate(words[3]));
  if (link.a == link.b) return Error(words[2], "is the same GPU: an NVLink joins two");
  server_.nvlinks.push_back(link);
  return absl::OkStatus();
}

absl::Status Parser::ParseSetting(const Words& words, absl::string_view line) {
  if (words.size() != 2) return Error(line, absl::StrCat("is not known: ", kForms));
  if (!settings_.insert(std::string(words[0])).second) {
    return Error(words[0], "appears twice: write it once");
  }
  if (words[0] == "p2p") {
    THIMBLE_ASSIGN_OR_RETURN(server_.peer_bytes_per_second, Rate(words[1]));
  } else if (words[0] == "message") {
    THIMBLE_ASSIGN_OR_RETURN(server_.message_bytes_per_second, Rate(words[1]));
  } else if (words[0] == "gpu_memory") {
    THIMBLE_ASSIGN_OR_RETURN(server_.gpu_bytes_per_second, Rate(words[1]));
  } else if (words[0] == "host_memory") {
    const absl::StatusOr<Bytes> bytes = ParseBytes(words[1]);
    if (!bytes.ok() || *bytes == 0)
      return Error(words[1], "is not a size: write bytes, such as 256GiB");
    server_.host_bytes = static_cast<double>(*bytes);
  } else if (words[0] == "update_speed") {
    if (!absl::SimpleAtod(words[1], &server_.update_speed) ||
        !(server_.update_speed >= 1e-3 && server_.update_speed <= 1e3)) {
      return Error(words[1],
                   "is not a speed: write a number from 0.001 to 1000; 1 is the profile's host");
    }
  } else if (words[0] == "duplex" && (words[1] == "full" || words[1] == "half")) {
    server_.half_duplex = words[1] == "half";
  } else {
    return Error(line, absl::StrCat("is not known: ", kForms));
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseLine(absl::string_view line) {
  ++line_;
  line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
  if (line.empty()) return absl::OkStatus();
  const Words words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words[0] == "switch") return ParseSwitch(words);
  if (words[0] == "gpu") return ParseGpu(words);
  if (words[0] == "nvlink") return ParseNvlink(words);
  return ParseSetting(words, line);
}

absl::StatusOr<Server> Parser::Finish() {
  for (int gpu = 0; gpu < std::max(1, server_.gpu_count()); ++gpu) {
    if (numbers_.count(gpu) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(name_, ": gpu ", gpu,
                                                     " is missing: describe all from 0 on, 'gpu ",
                                                     gpu, " switch NAME'"));
    }
  }
  for (const Nvlink& link : server_.nvlinks) {
    const int missing = std::max(link.a, link.b);
    if (missing >= server_.gpu_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": an nvlink ends at gpu ", missing, ", which is not described"));
    }
  }
  return server_;
}

}  // namespace

double Server::HostBytesPerSecond() const {
  double sum = 0;
  for (const Switch& one : switches) {
    if (one.above == kHost) sum += one.uplink_bytes_per_second;
  }
  return sum;
}

Server PublishedServer(int gpus, double memory_bytes) {
  Server server;
  server.switches.push_back({"root", kHost, 11.5 * kGiBps});
  server.gpus.resize(gpus);
  server.memory_bytes = memory_bytes;
  server.peer_bytes_per_second = 8.2 * kGiBps;
  server.message_bytes_per_second = 16 * kGiBps;
  server.gpu_bytes_per_second = kGpuMemory;
  return server;
}

absl::StatusOr<Server> ParseTopology(absl::string_view text, absl::string_view name,
                                     double memory_bytes) {
  Parser parser(name, memory_bytes);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    THIMBLE_RETURN_IF_ERROR(parser.ParseLine(line));
  }
  return parser.Finish();
}

absl::StatusOr<Server> ReadTopologyFile(const std::string& path, double memory_bytes) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseTopology(text, path, memory_bytes);
}

}  // namespace thimble::harmony
