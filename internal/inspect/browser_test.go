package inspect

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// screenshotsTo is a folder that gets the pictures for the docs: hack/screenshots.sh sets it.
const screenshotsTo = "GATEWAY_API_OPENSTACK_SCREENSHOTS"

// browser is a tab of a headless Chromium.
type browser struct {
	context.Context //nolint:containedctx // chromedp's tab is its context
	mu              sync.Mutex
	complaints      []string
	asked           []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium on PATH: the page was not looked at (Debian: apt-get install chromium)")
	}
	// A root user has no sandbox, and the page is our own. The resolver has no names: what is not on loopback cannot be loaded.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"), chromedp.UserDataDir(t.TempDir()), chromedp.Env("TZ=UTC"), chromedp.WSURLReadTimeout(2*time.Minute))
	process, end := chromedp.NewExecAllocator(t.Context(), options...)
	tab, closeTab := chromedp.NewContext(process)
	b := &browser{Context: tab}
	t.Cleanup(func() { closeTab(); end() })
	chromedp.ListenTarget(tab, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			b.complaints = append(b.complaints, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			b.asked = append(b.asked, e.Request.URL)
		}
	})
	// The browser lives as long as the context of its first use: that is the tab's, which has no end of its own.
	if err := chromedp.Run(tab); err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	return b
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, 2*time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatalf("%v\nthe browser says: %v", err, b.complaints)
	}
}

// ask evaluates an expression that gives a text.
func (b *browser) ask(t *testing.T, expression string) string {
	t.Helper()
	var out string
	b.do(t, chromedp.Evaluate("String("+expression+")", &out))
	return out
}

// until waits for an expression to become true.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	b.do(t, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(time.Minute)))
}

func size(width, height int64) chromedp.Action {
	return chromedp.EmulateViewport(width, height, chromedp.EmulateScale(1))
}

func scheme(value string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}})
}

// A hostile name may be in everything that others wrote.
const hostile = `<img src=x onerror="document.title='owned'">`

func TestPage_inChromium(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	var mu sync.Mutex
	shown := samplePicture(t)
	p := newPage(0, func(context.Context) (*Picture, error) {
		mu.Lock()
		defer mu.Unlock()
		if shown == nil {
			return nil, fmt.Errorf("the API server is away")
		}
		fresh := *shown
		return &fresh, nil
	}, time.Now)
	// The plans of the sample stand for those of an hour.
	p.history.plans = shown.Plans
	server := httptest.NewServer(p)
	defer server.Close()

	b.do(t, network.Enable(), log.Enable(), size(1280, 900), scheme("light"), chromedp.Navigate(server.URL+p.prefix), chromedp.WaitVisible(".gateway", chromedp.ByQuery))

	for what, c := range map[string][2]string{
		"Gateways":                         {`document.querySelectorAll(".gateway").length`, "2"},
		"order of policies":                {`[...document.querySelectorAll(".gateway:first-child .policy .from")].map(e => e.textContent).join(" ")`, "infra/to-https shop/cart shop/cart shop/site blog/blog"},
		"a line for each policy of a pool": {`document.querySelectorAll(".wires path").length`, "6"},
		"members":                          {`document.querySelectorAll(".members li:not(.rest)").length`, "30"},
		"sick members come first":          {`document.querySelectorAll(".gateway")[1].querySelector(".members li .state").textContent`, "ERROR"},
		"the sum":                          {`document.getElementById("sum").textContent`, "2 Gateways1 with trouble28 members up2 down2 calls pending"},
		"pending calls":                    {`document.querySelectorAll(".pending li").length`, "2"},
		"last plans":                       {`document.querySelectorAll("#history > li").length`, "2"},
		"nothing wider than the page":      {`document.documentElement.scrollWidth <= 1280`, "true"},
	} {
		if got := b.ask(t, c[0]); got != c[1] {
			t.Errorf("%s: got %s, want %s", what, got, c[1])
		}
	}

	t.Run("screenshots", func(t *testing.T) {
		for name, how := range map[string]chromedp.Tasks{
			"page-light":  {size(1280, 900), scheme("light")},
			"page-dark":   {size(1280, 900), scheme("dark")},
			"page-narrow": {size(390, 844), scheme("light")},
		} {
			var picture []byte
			b.do(t, how, chromedp.Sleep(300*time.Millisecond), chromedp.FullScreenshot(&picture, 100))
			if got := b.ask(t, `document.documentElement.scrollWidth <= innerWidth`); got != "true" {
				t.Errorf("%s: the page is wider than the window", name)
			}
			if len(picture) < 20_000 {
				t.Errorf("%s: a picture of %d bytes shows nothing", name, len(picture))
			}
			if folder := os.Getenv(screenshotsTo); folder != "" {
				if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.do(t, size(1280, 900), scheme("light"))
	})

	t.Run("keyboard", func(t *testing.T) {
		focused := `document.activeElement.id`
		b.do(t, chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
		if got := b.ask(t, focused); got != "gateway-team-a/internal" {
			t.Errorf("j j goes to %s", got)
		}
		b.do(t, chromedp.KeyEvent("k"), chromedp.KeyEvent(kb.Tab))
		if got := b.ask(t, focused); got != "infra/edge|http-80|infra/to-https/0/0-s" {
			t.Errorf("k Tab goes to %s", got)
		}
		b.do(t, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
		b.until(t, `document.activeElement.parentElement.open`)
		if got := b.ask(t, `document.querySelectorAll(".box.lit [data-x], .box.lit").length + " " + document.querySelector(".box.lit h3").textContent`); got != "1 shop/cart-next:80" {
			t.Errorf("the focused policy lights %s", got)
		}
		// A refresh with news takes neither what is open nor the focus.
		before := b.ask(t, focused)
		mu.Lock()
		shown = samplePicture(t)
		shown.Gateways[1].Pools[0].Members[0].OperatingStatus = "ONLINE"
		mu.Unlock()
		b.until(t, `document.getElementById("sum").textContent.includes("29 members up")`)
		if got := b.ask(t, focused+` + " " + document.activeElement.parentElement.open`); got != before+" true" {
			t.Errorf("after a refresh: %s, want %s", got, before)
		}
		b.do(t, chromedp.KeyEvent("/"), chromedp.KeyEvent("orders-v2"))
		if got := b.ask(t, `[...document.querySelectorAll(".gateway h2")].map(e => e.textContent).join(" ")`); got != "team-a/internal" {
			t.Errorf("the filter shows %s", got)
		}
		b.do(t, chromedp.KeyEvent(kb.Escape))
		b.until(t, `document.querySelectorAll(".gateway").length === 2`)
	})

	t.Run("hostile names", func(t *testing.T) {
		mu.Lock()
		shown = samplePicture(t)
		g := &shown.Gateways[0]
		g.Gateway, g.Status, g.Message, g.Refused = hostile, hostile, hostile, []string{hostile}
		g.Listeners[1].Policies[0].Match, g.Listeners[1].Policies[0].Rules = hostile, []string{hostile}
		g.Pools[0].Members[0].Node, g.Pools[0].Members[0].OperatingStatus = hostile, hostile
		mu.Unlock()
		b.until(t, `document.querySelector(".gateway h2").textContent.includes("onerror")`)
		if got := b.ask(t, `document.querySelectorAll("main img, main script").length + document.title`); got != "0Gateways in Octavia" {
			t.Errorf("markup of a name became real: %s", got)
		}
	})

	if folded := strings.Join(b.complaints, "\n"); folded != "" {
		t.Errorf("the browser complains (exceptions, violations of the policy):\n%s", folded)
	}

	t.Run("failures are shown", func(t *testing.T) {
		mu.Lock()
		shown = nil
		mu.Unlock()
		b.until(t, `document.getElementById("failed").textContent.includes("the API server is away")`)
		server.CloseClientConnections()
		server.Listener.Close() //nolint:errcheck // the page is gone, as after Ctrl-C
		b.until(t, `document.getElementById("failed").textContent.includes("was it ended?")`)
		if got := b.ask(t, `document.querySelectorAll(".gateway").length`); got != "2" {
			t.Errorf("after the failures %s Gateways are shown", got)
		}
	})

	for _, url := range b.asked {
		if !strings.HasPrefix(url, server.URL+p.prefix) {
			t.Errorf("the page asks %s", url)
		}
	}
}
