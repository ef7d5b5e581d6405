#include <algorithm>
#include <array>

#include "tests/workloads/generators.h"

namespace thimble::workloads {
namespace {

constexpr Bytes kFloat = 4;

// GPT-2 small, decoding eagerly for several users at once: every operation makes a tensor and then
// drops its inputs, and every token replaces all caches of its conversation by ones with another
// row.
class Decoder {
 public:
  Decoder(Random* random, TraceWriter* out) : random_(*random), out_(*out) {
    out_.Allocate(kVocabulary * kHidden * kFloat);
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      for (const Bytes rows : {Bytes{3}, Bytes{1}, Bytes{4}, Bytes{4}}) {
        out_.Allocate(rows * kHidden * kHidden * kFloat);
        out_.Allocate(rows * kHidden * kFloat);
      }
    }
    for (std::size_t i = 0; i < kConversations; ++i) conversations_.push_back(Begin());
  }

  // Makes one token for every user. A finished conversation makes room for a new one.
  void Step() {
    out_.Step();
    for (Conversation& conversation : conversations_) {
      if (conversation.tokens == conversation.last) {
        for (const std::uint32_t cache : conversation.caches) out_.Free(cache);
        conversation = Begin();
      }
      ++conversation.tokens;
      Token(&conversation);
    }
  }

 private:
  static constexpr std::size_t kConversations = 6;
  static constexpr Bytes kLongest = 640;
  static constexpr std::size_t kLayers = 12;
  static constexpr Bytes kHidden = 768;
  static constexpr Bytes kHeads = 12;
  static constexpr Bytes kVocabulary = 50257;
  static constexpr Bytes kBeams = 2;
  static constexpr Bytes kRow = kBeams * kHidden * kFloat;

  struct Conversation {
    Bytes tokens = 0;
    Bytes last = 0;
    std::vector<std::uint32_t> caches;  // keys and values of each layer
  };

  Conversation Begin() {
    constexpr Bytes kShortest = 16;
    Conversation conversation;
    conversation.tokens = kShortest + random_.Index(kLongest / 2);
    conversation.last =
        conversation.tokens + kShortest + random_.Index(kLongest - conversation.tokens - kShortest);
    for (std::size_t i = 0; i < 2 * kLayers; ++i) {
      conversation.caches.push_back(out_.Allocate(conversation.tokens * kRow));
    }
    return conversation;
  }

  // Every tensor is computed from the previous one, which is then freed.
  void Next(Bytes bytes) {
    const std::uint32_t next = out_.Allocate(bytes);
    out_.Free(current_);
    current_ = next;
  }

  void Append(std::uint32_t* cache, Bytes tokens) {
    const std::uint32_t row = out_.Allocate(kRow);
    const std::uint32_t longer = out_.Allocate(tokens * kRow);
    out_.Free(*cache);
    out_.Free(row);
    *cache = longer;
  }

  void Token(Conversation* conversation) {
    const Bytes scores = kBeams * kHeads * conversation->tokens * kFloat;
    current_ = out_.Allocate(kRow);
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const std::uint32_t residual = out_.Allocate(kRow);
      Next(3 * kRow);  // query, key, value
      Append(&conversation->caches[2 * layer], conversation->tokens);
      Append(&conversation->caches[2 * layer + 1], conversation->tokens);
      Next(scores);
      Next(scores);  // softmax
      Next(kRow);
      Next(4 * kRow);
      Next(4 * kRow);  // activation
      Next(kRow);
      out_.Free(residual);
    }
    Next(kBeams * kVocabulary * kFloat);
    Next(kBeams * sizeof(std::int64_t));
    out_.Free(current_);
  }

  Random& random_;
  TraceWriter& out_;
  std::vector<Conversation> conversations_;
  std::uint32_t current_ = 0;
};

// Training of a U-Net: activations of the way down stay for the way up and for the gradients.
class Unet {
 public:
  Unet(Random* random, TraceWriter* out) : random_(*random), out_(*out) {
    for (std::size_t level = 0; level < kLevels; ++level) {
      const Bytes channels = Channels(level);
      for (int convolution = 0; convolution < 2 * kConvolutions; ++convolution) {
        for (int copy = 0; copy < 3; ++copy) {  // weights and the two moments of Adam
          out_.Allocate(9 * channels * channels * kFloat);
        }
      }
    }
  }

  void TrainingStep() {
    constexpr std::array<Bytes, 7> kSides = {192, 224, 256, 288, 320, 384, 448};
    height_ = kSides[random_.Index(kSides.size())];
    width_ = kSides[random_.Index(kSides.size())];
    out_.Step();
    for (std::size_t level = 0; level < kLevels; ++level) Convolve(level);
    for (std::size_t level = kLevels; level-- > 0;) Convolve(level);
    Backward();
  }

 private:
  static constexpr std::size_t kLevels = 5;
  static constexpr int kConvolutions = 4;
  static constexpr Bytes kBatch = 4;

  static constexpr Bytes Channels(std::size_t level) { return Bytes{32} << level; }

  Bytes Activation(std::size_t level) const {
    return kBatch * Channels(level) * (height_ >> level) * (width_ >> level) * kFloat;
  }

  void Convolve(std::size_t level) {
    const Bytes bytes = Activation(level);
    for (int convolution = 0; convolution < kConvolutions; ++convolution) {
      const std::uint32_t workspace = out_.Allocate(bytes / 3 + 9 * Channels(level) * kKiB);
      kept_.push_back(out_.Allocate(bytes));
      out_.Free(workspace);
      kept_.push_back(out_.Allocate(2 * Channels(level) * kFloat));  // statistics
    }
  }

  void Backward() {
    std::uint32_t gradient = out_.Allocate(out_.bytes_of(kept_.back()));
    while (!kept_.empty()) {
      const std::uint32_t activation = kept_.back();
      kept_.pop_back();
      const std::uint32_t next = out_.Allocate(out_.bytes_of(activation));
      out_.Free(out_.Allocate(out_.bytes_of(activation) / 5 + kMiB));  // workspace
      out_.Free(gradient);
      out_.Free(activation);
      gradient = next;
    }
    out_.Free(gradient);
  }

  Random& random_;
  TraceWriter& out_;
  Bytes height_ = 0;
  Bytes width_ = 0;
  std::vector<std::uint32_t> kept_;
};

}  // namespace

void EagerDecoding(std::size_t ops, Random* random, TraceWriter* out) {
  Decoder decoder(random, out);
  while (out->ops() < ops) decoder.Step();
}

void UnetOfVaryingImages(std::size_t ops, Random* random, TraceWriter* out) {
  Unet unet(random, out);
  while (out->ops() < ops) unet.TrainingStep();
}

}  // namespace thimble::workloads
