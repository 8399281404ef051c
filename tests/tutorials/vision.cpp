// Images: a convolutional classifier, transfer learning, saliency, adversarial examples, a spatial
// transformer, and generative models.
#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;

namespace {

struct ConvNet : nn::Module<ConvNet> {
  nn::Conv2d conv1{register_module("conv1", nn::Conv2d(1, 6, 5))};
  nn::MaxPool2d pool{register_module("pool", nn::MaxPool2d(2, {.stride = 2}))};
  nn::Conv2d conv2{register_module("conv2", nn::Conv2d(6, 16, 5))};
  nn::Linear fc1{register_module("fc1", nn::Linear(16 * 4 * 4, 60))};
  nn::Linear fc2{register_module("fc2", nn::Linear(60, 10))};

  flow::Tensor features(const flow::Tensor& x) {
    flow::Tensor y = pool(flow::relu(conv1(x)));
    y = pool(flow::relu(conv2(y)));
    return flow::relu(fc1(flow::flatten(y, 1)));
  }

  flow::Tensor forward(const flow::Tensor& x) { return fc2(features(x)); }
};

flow::data::Mnist digits(int64_t count, uint64_t seed) {
  return flow::data::Mnist(flow::data::generate_digits(count, seed));
}

// (N, 1, 28, 28), whatever dims the dataset gives.
flow::Tensor as_images(const flow::Tensor& x) {
  return x.reshape({-1, 1, 28, 28});
}

double accuracy(ConvNet& model, const flow::data::Mnist& data) {
  const flow::NoGradGuard no_grad;
  const flow::Tensor found = model(as_images(data.images())).argmax(1);
  return (found == data.labels()).to(flow::float32).mean().item();
}

ConvNet trained(int64_t epochs) {
  ConvNet model;
  flow::data::DataLoader loader(digits(2000, 1), {.batch_size = 50, .shuffle = true});
  flow::optim::Adam optimizer(model.parameters(), {.lr = 3e-3});
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const auto& [images, labels] : loader) {
      optimizer.zero_grad();
      flow::cross_entropy(model(as_images(images)), labels).backward();
      optimizer.step();
    }
  }
  return model;
}

void cnn_classifier() {
  ConvNet model = trained(8);
  const double found = accuracy(model, digits(300, 2));
  flow::print("accuracy", found);
  expect(found > 0.75, "the network knows most digits");
}

void transfer_learning() {
  ConvNet model = trained(6);
  const double before = accuracy(model, digits(300, 2));
  // A new head on frozen features.
  for (const flow::Tensor& parameter : model.parameters())
    parameter.requires_grad_(false);
  model.replace_module("fc2", nn::Linear(60, 10));
  const flow::Tensor frozen = model.conv1.weight.clone();
  std::vector<flow::Tensor> trainable;
  for (const flow::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  expect(trainable.size() == 2, "only the new head is trained");
  const double guessed = accuracy(model, digits(300, 2));
  flow::optim::Adam optimizer(trainable, {.lr = 5e-3});
  flow::data::DataLoader loader(digits(1000, 1), {.batch_size = 50, .shuffle = true});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const auto& [images, labels] : loader) {
      optimizer.zero_grad();
      flow::cross_entropy(model(as_images(images)), labels).backward();
      optimizer.step();
    }
  }
  const double after = accuracy(model, digits(300, 2));
  flow::print("accuracy", before, "new head", guessed, "trained", after);
  expect(guessed < 0.35 && after > before - 0.1, "the new head learns from the old features");
  expect(flow::equal(model.conv1.weight, frozen), "the features did not change");
}

void saliency() {
  // Of a linear model, the gradient of a logit is the row of the weight.
  nn::Linear linear(4, 3);
  const flow::Tensor x = flow::randn({1, 4}).requires_grad_();
  const flow::Tensor logits = linear(x);
  logits[0][logits.argmax(1).item<int64_t>()].backward();
  expect(flow::equal(x.grad()[0], linear.weight[logits.argmax(1).item<int64_t>()]),
         "the saliency of a linear model is its weight");

  ConvNet model = trained(1);
  const flow::Tensor image = as_images(digits(1, 3).images()).clone().requires_grad_();
  model(image).max(1).values.sum().backward();
  const flow::Tensor map = image.grad().abs().amax({1});
  expect(map.shape() == flow::Shape{1, 28, 28} && map.sum().item() > 0, "a map of the image");
}

void fgsm() {
  ConvNet model = trained(6);
  const auto data = digits(200, 2);
  const flow::Tensor images = as_images(data.images()).clone().requires_grad_();
  const flow::Tensor loss = flow::cross_entropy(model(images), data.labels());
  loss.backward();
  double last = (model(images).argmax(1) == data.labels()).to(flow::float32).mean().item();
  const double clean = last;
  for (const double epsilon : {0.05, 0.15, 0.3}) {
    const flow::NoGradGuard no_grad;
    const flow::Tensor attacked = flow::clamp(images + epsilon * images.grad().sign(), 0, 1);
    const double found =
        (model(attacked).argmax(1) == data.labels()).to(flow::float32).mean().item();
    flow::print("epsilon", epsilon, "accuracy", found);
    expect(found <= last + 0.02, "a larger step fools the model more often");
    last = found;
  }
  expect(last < clean - 0.2, "the attack works");
}

void spatial_transformer() {
  // Finds the shift that moves one picture onto another.
  flow::Tensor picture = flow::zeros({1, 1, 16, 16});
  const flow::Tensor grid = flow::linspace(-1, 1, 16);
  picture.copy_((-(grid.unsqueeze(1).pow(2) + grid.pow(2)) * 6).exp().reshape({1, 1, 16, 16}));
  const auto moved = [&](const flow::Tensor& theta) {
    return flow::grid_sample(picture, flow::affine_grid(theta, {1, 1, 16, 16}));
  };
  const flow::Tensor identity = flow::tensor({{{1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}}});
  expect(flow::allclose(moved(identity), picture, {.rtol = 1e-4, .atol = 1e-5}),
         "the identity does not move it");
  const flow::Tensor wanted = moved(flow::tensor({{{1.f, 0.f, 0.4f}, {0.f, 1.f, -0.2f}}}));
  const flow::Tensor theta = identity.clone().requires_grad_();
  flow::optim::Adam optimizer({theta}, {.lr = 0.02});
  for (int step = 0; step < 150; ++step) {
    optimizer.zero_grad();
    flow::mse_loss(moved(theta), wanted).backward();
    optimizer.step();
  }
  expect_near(theta.select(2, 2).flatten(), {0.4, -0.2}, "the shift", 0.05);
}

void gan() {
  // The generator learns to draw from N(4, 0.5²).
  nn::Sequential generator(nn::Linear(4, 16), nn::ReLU(), nn::Linear(16, 1));
  nn::Sequential discriminator(nn::Linear(1, 16), nn::LeakyReLU({.negative_slope = 0.2}),
                               nn::Linear(16, 1));
  flow::optim::Adam of_generator(generator.parameters(), {.lr = 5e-3, .betas = {0.5, 0.999}});
  flow::optim::Adam of_discriminator(discriminator.parameters(),
                                     {.lr = 5e-3, .betas = {0.5, 0.999}});
  nn::BCEWithLogitsLoss criterion;
  const flow::Tensor real_label = flow::ones({64, 1}), fake_label = flow::zeros({64, 1});
  for (int step = 0; step < 600; ++step) {
    discriminator.zero_grad();
    const flow::Tensor real = 4 + 0.5 * flow::randn({64, 1});
    const flow::Tensor fake = generator(flow::randn({64, 4}));
    criterion(discriminator(real), real_label).backward();
    criterion(discriminator(fake.detach()), fake_label).backward();
    of_discriminator.step();

    generator.zero_grad();
    criterion(discriminator(fake), real_label).backward();
    of_generator.step();
  }
  const flow::NoGradGuard no_grad;
  const double mean = generator(flow::randn({1000, 4})).mean().item();
  flow::print("mean of the generator", mean);
  expect(std::abs(mean - 4) < 1, "the generator has found the data");
}

struct Vae : nn::Module<Vae> {
  nn::Linear fc1{register_module("fc1", nn::Linear(784, 64))};
  nn::Linear fc21{register_module("fc21", nn::Linear(64, 8))};
  nn::Linear fc22{register_module("fc22", nn::Linear(64, 8))};
  nn::Linear fc3{register_module("fc3", nn::Linear(8, 64))};
  nn::Linear fc4{register_module("fc4", nn::Linear(64, 784))};

  auto forward(const flow::Tensor& x) {
    const flow::Tensor h = flow::relu(fc1(x.reshape({-1, 784})));
    const flow::Tensor mu = fc21(h), logvar = fc22(h);
    const flow::Tensor std = (0.5 * logvar).exp();
    const flow::Tensor z = mu + flow::randn_like(std) * std;
    return std::tuple(flow::sigmoid(fc4(flow::relu(fc3(z)))), mu, logvar);
  }
};

void vae() {
  Vae model;
  flow::optim::Adam optimizer(model.parameters(), {.lr = 2e-3});
  const flow::Tensor images = digits(256, 1).images().reshape({-1, 784});
  const auto divergence = [](const flow::Tensor& mu, const flow::Tensor& logvar) {
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum();
  };
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 40; ++epoch) {
    optimizer.zero_grad();
    const auto [seen, mu, logvar] = model(images);
    const flow::Tensor loss =
        flow::binary_cross_entropy(seen, images, {.reduction = "sum"}) + divergence(mu, logvar);
    loss.backward();
    optimizer.step();
    last = loss.item() / 256;
    if (epoch == 0) {
      first = last;
      const flow::distributions::Normal q(mu.detach(), (0.5 * logvar).exp().detach());
      const flow::distributions::Normal p(flow::zeros_like(mu), flow::ones_like(mu));
      expect_near(flow::distributions::kl_divergence(q, p).sum().item(),
                  divergence(mu, logvar).item(), "the divergence in closed form", 1e-4);
    }
  }
  flow::print("loss for each image", first, "->", last);
  expect(last < 0.65 * first, "the loss falls");
}

}  // namespace

int main() {
  return run_tutorials({{"cnn_classifier", cnn_classifier},
                        {"transfer_learning", transfer_learning},
                        {"saliency", saliency},
                        {"fgsm", fgsm},
                        {"spatial_transformer", spatial_transformer},
                        {"gan", gan},
                        {"vae", vae}});
}
